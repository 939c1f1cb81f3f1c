"""What a batch says of the sequences that a model reads."""


def test_the_length_is_that_of_the_tokens_which_a_model_reads(torchrun):
    """Not of a transcript beside the sound that it belongs to."""
    assert "the end" in torchrun("loader_facts.py", workers=1).output
