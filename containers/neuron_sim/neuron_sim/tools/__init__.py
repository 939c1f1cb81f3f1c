"""The Neuron command-line tools that the toolkit and users call."""
