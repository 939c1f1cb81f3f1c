"""From a CUDA script to Trainium: what its text says of the way, and the way as a diff.

script    the text and its syntax tree
finding   one remark, with the edits that settle it where they are sure
names     what torch_xla calls things in a framework version
trainers, loaders, models    what of a script is a library's, a loader, a model
device, tensor_types, native, cuda_only, libraries, processes, weights, batches, drawn, ends, shapes, steps, reads,
    precision, files, kept, logs    what is looked for
one_rank  what one process does alone
flags     hyperparameters that its argparse refuses
checkpointing    what to write for gradient checkpointing
reading   all remarks on a script
patch     their edits as a unified diff

Nothing is run or imported. Positions are those of `ast`, edits replace text between them: comments and
formatting stay, and one reading gives both the remarks and the diff.
"""
