"""transformers' Trainer in the ways whose size a short rehearsal must find: the keywords of its arguments say which."""

import json
import sys

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

TRAIN, HELD_OUT = 4000, 320


class Reviews(torch.utils.data.Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return self.rows

    def __getitem__(self, index):
        return {"input_ids": torch.full((16,), index % 50), "labels": torch.tensor(index % 2)}


config = BertConfig(
    vocab_size=50,
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=16,
    attn_implementation="eager",
)
arguments = TrainingArguments(
    output_dir=sys.argv[1],
    per_device_train_batch_size=8,
    per_device_eval_batch_size=8,
    save_strategy="no",
    report_to=[],
    logging_steps=1000,
    **json.loads(sys.argv[2]),
)
Trainer(
    BertForSequenceClassification(config),
    arguments,
    train_dataset=Reviews(TRAIN),
    eval_dataset=Reviews(HELD_OUT),
).train()
