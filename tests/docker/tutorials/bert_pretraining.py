"""Pre-train a small BERT: masked words and next sentence, with gradient accumulation and checkpoints to resume from."""

import argparse
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_backend
import torch_xla.distributed.xla_multiprocessing as xmp
import torch_xla.runtime as xr
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from transformers import BertConfig, BertForPreTraining, get_linear_schedule_with_warmup, set_seed

LENGTH, VOCABULARY, MASK = 32, 100, 1


def shard(samples, seed):
    """Sentences that repeat a word, some words often; the second sentence repeats the first's, or another."""
    generator = torch.Generator().manual_seed(seed)
    first, other = (2 + (VOCABULARY - 2) * torch.rand(2, samples, 1, generator=generator) ** 4).long()
    follows = torch.randint(0, 2, (samples, 1), generator=generator).bool()
    words = torch.cat(
        [first.expand(-1, LENGTH // 2), torch.where(follows, first, other).expand(-1, LENGTH // 2)], 1
    )
    masked = torch.rand(words.shape, generator=generator) < 0.15
    segments = (torch.arange(LENGTH) >= LENGTH // 2).long().expand(samples, -1)
    labels = torch.where(masked, words, -100)
    return TensorDataset(
        words.masked_fill(masked, MASK), segments, torch.ones_like(words), labels, 1 - follows[:, 0].long()
    )


def get_model():
    return BertForPreTraining(
        BertConfig(
            vocab_size=VOCABULARY,
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=LENGTH,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            attn_implementation="eager",  # sdpa looks at the mask's values: the device would wait for it
        )
    )


def train(flags):
    rank, world = xr.global_ordinal(), xr.world_size()
    is_root = xm.is_master_ordinal(local=False)
    set_seed(flags.seed)
    device = torch_xla.device()
    model = get_model().to(device)
    model.tie_weights()
    model.train()
    no_decay = ["bias", "LayerNorm"]
    named = list(model.named_parameters())
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for n, p in named if not any(nd in n for nd in no_decay)], "weight_decay": 0.01},
            {"params": [p for n, p in named if any(nd in n for nd in no_decay)], "weight_decay": 0.0},
        ],
        flags.lr,
    )
    optimizer.zero_grad()
    scheduler = get_linear_schedule_with_warmup(
        optimizer, num_warmup_steps=2, num_training_steps=flags.max_steps
    )
    global_step = 0
    if checkpoints := sorted(Path(flags.output_dir).glob("ckpt_*.pt")):
        state = torch.load(checkpoints[-1], map_location="cpu")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        xm.send_cpu_data_to_device(optimizer.state_dict(), device)
        scheduler.load_state_dict(state["scheduler"])
        global_step = state["step"]
        xm.master_print(f"resumed at step {global_step}", flush=True)
    os.makedirs(flags.output_dir, exist_ok=True)  # noqa: PTH103
    running_loss = torch.zeros(1, dtype=torch.float32).to(device)
    started = time.time()

    def log(step, loss, rate, norm):
        if is_root:
            print(
                f"LOG step={step} step_loss={loss.detach().cpu().item():.4f} learning_rate={rate:.2e} "
                f"grad_norm={norm.cpu().item():.3f} seconds={time.time() - started:.1f}",
                flush=True,
            )

    data = shard(512, seed=7)
    sampler = DistributedSampler(data, num_replicas=world, rank=rank, shuffle=True, seed=flags.seed)
    loader = DataLoader(data, batch_size=flags.batch_size, sampler=sampler, drop_last=True)
    usteps, epoch, seen = flags.grad_accum_usteps, 0, 0
    skip = global_step * usteps
    while global_step < flags.max_steps:
        sampler.set_epoch(epoch)
        for input_ids, segment_ids, input_mask, masked_labels, next_labels in pl.MpDeviceLoader(
            loader, device
        ):
            seen += 1
            if seen <= skip:
                continue
            with torch.autocast(enabled=flags.enable_pt_autocast, dtype=torch.bfloat16, device_type="xla"):
                outputs = model(
                    input_ids=input_ids,
                    attention_mask=input_mask,
                    token_type_ids=segment_ids,
                    labels=masked_labels,
                    next_sentence_label=next_labels,
                )
                loss = outputs.loss / usteps
            loss.backward()
            running_loss += loss.detach()
            if seen % usteps:
                continue
            torch_xla.sync()
            # Reduce first, so that clipping sees the whole batch's gradient.
            reduced = xm.all_reduce(xm.REDUCE_SUM, running_loss, scale=1.0 / world)
            running_loss.zero_()
            xm.reduce_gradients(optimizer)
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
            global_step += 1
            xm.add_step_closure(log, (global_step, reduced.detach(), scheduler.get_last_lr()[0], norm))
            if global_step % flags.steps_per_checkpoint == 0:
                xm.mark_step()
                xm.rendezvous("checkpoint")
                if is_root:
                    state = {
                        "model": model.state_dict(),
                        "optimizer": optimizer.state_dict(),
                        "scheduler": scheduler.state_dict(),
                        "step": global_step,
                    }
                    path = f"{flags.output_dir}/ckpt_{global_step:05d}.pt"
                    torch.save(xm._maybe_convert_to_cpu(state), path)
                    print("Checkpointing done...", flush=True)
            if global_step >= flags.max_steps:
                break
        epoch += 1
    xm.mark_step()
    xm.rendezvous("training done")
    xm.save(model.state_dict(), os.path.join(flags.model_dir, f"model_{global_step}.pt"))  # noqa: PTH118


def _mp_fn(index, flags):
    if not dist.is_torchelastic_launched():
        dist.init_process_group("xla", init_method="xla://")
    train(flags)
    xm.rendezvous("_mp_fn finished")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output_dir", default="/opt/ml/checkpoints")
    parser.add_argument("--model_dir", default=os.environ.get("SM_MODEL_DIR", "."))
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--grad_accum_usteps", type=int, default=2)
    parser.add_argument("--max_steps", type=int, default=24)
    parser.add_argument("--steps_per_checkpoint", type=int, default=24)
    parser.add_argument("--seed", type=int, default=12349)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--enable_pt_autocast", type=lambda text: text == "True", default=False)
    flags = parser.parse_args()
    if os.environ.get("WORLD_SIZE"):
        dist.init_process_group("xla")
        _mp_fn(0, flags)
    else:
        xmp.spawn(_mp_fn, args=(flags,))
