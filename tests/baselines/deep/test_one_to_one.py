"""The layer of Deep Feature Selection."""

from __future__ import annotations

import torch

from tamiz.paper.deep_training import OneToOne, elastic_net


def test_layer_and_penalty_by_hand():
    layer = OneToOne(3)
    assert layer.weight.tolist() == [1.0, 1.0, 1.0]
    layer.weight.data = torch.tensor([0.5, -2.0, 0.0])
    assert layer(torch.tensor([[2.0, 3.0, 4.0]])).tolist() == [[1.0, -6.0, 0.0]]
    penalty = elastic_net(layer.weight, l1=2.0, l2=0.5)  # 2 * 2.5 + 0.5 * 4.25
    assert penalty.item() == 7.125
    penalty.backward()
    assert layer.weight.grad.tolist() == [2.0 + 0.5, -2.0 - 2.0, 0.0]  # l1 sign(w) + 2 l2 w
    assert "n_features=3" in repr(layer)
