# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face transformers' tensor parallelism: a rank of a small Llama of random weights.

compare.py starts it. Rank 0 prints a line of JSON: a digest of what the model computed, and the
seconds of each generation.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time

import torch
import torch.distributed as dist
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.distributed import DistributedConfig

import towpath.torch  # noqa: F401: registers the backend

PROMPT = torch.arange(1, 17).unsqueeze(0)
NEW_TOKENS = 64
GENERATIONS = 4  # of which the first is not timed


def write_model(folder: str) -> None:
    """A Llama whose random weights are the same each time."""
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=512, intermediate_size=1376, num_hidden_layers=8, num_attention_heads=8,
        num_key_value_heads=8, vocab_size=32000, max_position_embeddings=512,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)


def main() -> None:
    backend, folder = sys.argv[1:]
    torch.set_num_threads(1)
    dist.init_process_group(backend)
    if dist.get_rank() == 0:
        write_model(folder)
    dist.barrier()
    model = LlamaForCausalLM.from_pretrained(
        folder, distributed_config=DistributedConfig(tp_plan="auto")
    )
    seconds = []
    for _ in range(GENERATIONS):
        began = time.perf_counter()
        made = model.generate(
            PROMPT, max_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=0, eos_token_id=None
        )
        seconds.append(time.perf_counter() - began)
    with torch.no_grad():
        logits = model(PROMPT).logits
    digest = hashlib.sha256(made.numpy().tobytes() + logits.float().numpy().tobytes())
    if dist.get_rank() == 0:
        print(json.dumps({"digest": digest.hexdigest()[:16], "seconds": seconds[1:]}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
