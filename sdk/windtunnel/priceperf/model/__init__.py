"""The modelled seconds of one step, resource by resource, from the constants of a kind of accelerator."""
