"""Train a small BERT to tell good reviews from bad ones, with transformers' Trainer."""

import argparse
import os
import random
from pathlib import Path

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)
from transformers.trainer_utils import get_last_checkpoint

GOOD = ["good", "great", "fine", "lovely", "superb", "pleasant"]
BAD = ["bad", "poor", "awful", "dreadful", "boring", "tedious"]
OTHER = [
    "the",
    "a",
    "film",
    "book",
    "plot",
    "actor",
    "was",
    "is",
    "and",
    "very",
    "quite",
    "rather",
    "this",
    "that",
]


def reviews(count, seed):
    chance = random.Random(seed)  # noqa: S311
    texts, labels = [], []
    for _ in range(count):
        label = chance.randint(0, 1)
        words = chance.choices(OTHER, k=10) + chance.choices(GOOD if label else BAD, k=3)
        chance.shuffle(words)
        texts.append(" ".join(words))
        labels.append(label)
    return Dataset.from_dict({"text": texts, "label": labels})


def make_tokenizer():
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *GOOD, *BAD, *OTHER]
    tokenizer = Tokenizer(
        models.WordLevel({word: index for index, word in enumerate(words)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )


def make_model(vocabulary):
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=16,
        num_labels=2,
        attn_implementation="eager",  # sdpa reads the mask's values, which waits for the device
    )
    return BertForSequenceClassification(config)


def training_arguments(arguments):
    return TrainingArguments(
        output_dir=arguments.checkpoint_dir,
        num_train_epochs=2,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=16,
        learning_rate=3e-3,
        lr_scheduler_type="linear",
        warmup_steps=4,
        optim="adamw_torch",  # the default since transformers 4.54 is the fused AdamW, which raises without CUDA
        bf16=arguments.bf16 == "True",
        logging_steps=8,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=2,
        dataloader_drop_last=True,
        eval_accumulation_steps=1,  # else Trainer joins results on the device: a longer tensor, a new graph each time
        report_to="none",
        disable_tqdm=True,
    )


def accuracy(predictions):
    logits, labels = predictions
    return {"accuracy": float((logits.argmax(-1) == labels).mean())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model_dir", default=os.environ.get("SM_MODEL_DIR", "model"))
    parser.add_argument("--checkpoint_dir", default="/opt/ml/checkpoints")
    parser.add_argument("--bf16", default="False")
    arguments = parser.parse_args()
    set_seed(0)
    tokenizer = make_tokenizer()

    def encode(batch):
        return tokenizer(batch["text"], padding="max_length", max_length=16, truncation=True)

    train, evaluation = (
        reviews(count, seed).map(encode, batched=True, remove_columns=["text"])
        for count, seed in ((512, 1), (128, 2))
    )
    trainer = Trainer(
        model=make_model(len(tokenizer)),
        args=training_arguments(arguments),
        train_dataset=train,
        eval_dataset=evaluation,
        processing_class=tokenizer,
        compute_metrics=accuracy,
    )
    Path(arguments.checkpoint_dir).mkdir(parents=True, exist_ok=True)
    result = trainer.train(resume_from_checkpoint=get_last_checkpoint(arguments.checkpoint_dir))
    metrics = trainer.evaluate()
    print(
        f"rank {trainer.args.process_index} of {trainer.args.world_size} on {trainer.args.device}", flush=True
    )
    if trainer.is_world_process_zero():
        print(f"steps={trainer.state.global_step} train_loss={result.training_loss:.4f}", flush=True)
        print(f"accuracy={metrics['eval_accuracy']:.4f}", flush=True)
    trainer.save_model(arguments.model_dir)


if __name__ == "__main__":
    main()
