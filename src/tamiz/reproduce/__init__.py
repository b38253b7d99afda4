"""Tables and figures of the paper: protocols, and a runner that can be stopped and started again."""
