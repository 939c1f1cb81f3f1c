"""Finds in the text of a CUDA script what must change for Trainium, and writes the sure changes as a diff.

nodes          what single nodes of a syntax tree say
script         a file's text and its syntax tree
names          what torch_xla calls things in a framework version
trainers       libraries that run the training loop
loaders        the script's DataLoaders
models         which variables are models
weights        where a model's weights come from
one_rank       calls that only one rank makes
subject        what several topics ask about a script
gpu_tests      tests for a GPU, and what they decide
clips          gradients that are clipped before the cores exchange them
classes        which objects are, or hold, one of a class
tensors        which values are tensors on the device
reads          what fetches their values to the host
passes         what runs in every pass of a loop
forwards       forward passes of modules, and the tensors in them
each_step      what runs in each step on the device
evaluations    loops that evaluate a model
gone_over      which DataLoaders the loops of a program go over
finding        one finding, with the edits that settle it where they are sure
topics         what is looked for: a file each
left_out       the parts of a program that never run on trn1
search_path    folders that a script adds to sys.path
program        all findings on a script, and on the files that it imports
patch          their edits as a unified diff
tidy           what the edits make needless
flags          hyperparameters that the script's argparse refuses
checkpointing  what to write for gradient checkpointing

Nothing is run or imported. Positions are those of `ast`, and edits replace the text between them: comments and
formatting stay, and one reading gives both the findings and the diff.
"""
