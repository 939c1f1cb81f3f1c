"""From a CUDA script to Trainium: what its text says of the way, and the way as a diff.

script         the text and its syntax tree
names          what torch_xla calls things in a framework version
trainers, loaders, models    what of a script is a library's, a loader, a model
weights        where a model's weights come from
one_rank       what one process does alone
subject        what a script does, as far as several topics ask
clips          gradients that are clipped before the cores exchange them
tensors        which values are of the device
finding        one remark, with the edits that settle it where they are sure
topics         what is looked for: a file each
left_out       what of a program trn1 does not come to
search_path    folders that a script adds to sys.path
program        all remarks on a script, and on the files that it imports
patch          their edits as a unified diff
tidy           what the edits make needless
flags          hyperparameters that its argparse refuses
checkpointing  what to write for gradient checkpointing

Nothing is run or imported. Positions are those of `ast`, edits replace text between them: comments and
formatting stay, and one reading gives both the remarks and the diff.
"""
