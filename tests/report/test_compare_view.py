"""What the page of a comparison says."""

from tamiz.report.compare_view import compare_view, comparison_payload, comparison_rows, comparison_verdict, curves_said


def test_the_verdict_names_the_best_method_at_each_size(compare_data):
    scores = compare_data.comparison.intervals
    said = comparison_verdict(compare_data, scores)
    competitors = [
        (name, row)
        for name, row in zip(compare_data.methods, scores, strict=True)
        if name not in compare_data.comparison.references
    ]
    for place, m in enumerate(compare_data.m_values):
        best = max(competitors, key=lambda entry: entry[1][place].value)[0]
        sentence = next(part for part in said.split(". ") if part.startswith(f"{best} has the best mean"))
        assert f"{m:,}" in sentence
    assert "Best mean rank: " in said


def test_every_method_has_a_row(compare_data):
    rows = comparison_rows(compare_data, compare_data.comparison.intervals)
    assert len(rows) == len(compare_data.methods)
    assert "95 % intervals" in curves_said(compare_data)


def test_the_view_holds_what_the_template_needs(compare_data):
    view = compare_view(compare_data)
    assert view["payload"] == comparison_payload(compare_data)
    assert len(view["payload"]) > 0
