# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""One vLLM with a small Llama of random weights; compare.py starts it for each communicator.

Prints a line of JSON: tokens, seconds and what the ranks spent in communication, per batch.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16",
    "hidden_size": 512, "num_attention_heads": 8, "num_key_value_heads": 8,
    "num_hidden_layers": 8, "intermediate_size": 1376, "vocab_size": 32000,
    "max_position_embeddings": 512, "hidden_act": "silu", "rms_norm_eps": 1e-5,
    "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": False,
}  # fmt: skip
PROMPTS, PROMPT_TOKENS, NEW_TOKENS = 4, 32, 64
TIMED = ("all_reduce", "all_gather", "gather", "reduce_scatter", "broadcast")


def use_gloo(worker):
    """vLLM's own fallback where its shared memory is not there: torch.distributed with gloo."""
    import torch.distributed as dist
    from vllm.distributed.parallel_state import get_tp_group

    communicator = get_tp_group().device_communicator
    communicator.dist_module = dist
    return dist.get_backend(communicator.device_group)


def start_clock(worker):
    """Counts what this rank spends in its communicator from now on."""
    import time

    from vllm.distributed.parallel_state import get_tp_group

    communicator = get_tp_group().device_communicator
    spent = communicator.spent_s = []

    def timed(method):
        def call(*arguments, **options):
            began = time.perf_counter()
            result = method(*arguments, **options)
            spent.append(time.perf_counter() - began)
            return result

        return call

    for name in TIMED:
        setattr(communicator, name, timed(getattr(communicator, name)))
    return type(communicator).__name__


def read_clock(worker):
    """Seconds in communication, and how many calls, since the last reading."""
    from vllm.distributed.parallel_state import get_tp_group

    spent = get_tp_group().device_communicator.spent_s
    result = (sum(spent), len(spent), sorted(spent)[len(spent) // 2] if spent else 0.0)
    spent.clear()
    return result


def prepare(ranks: int) -> None:
    """What vLLM reads from the environment."""
    processors = sorted(os.sched_getaffinity(0))
    bound = "|".join(str(processors[rank % len(processors)]) for rank in range(ranks))
    os.environ.update(
        VLLM_CPU_KVCACHE_SPACE="1", HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1",
        OMP_NUM_THREADS="1", VLLM_CPU_OMP_THREADS_BIND=bound, VLLM_LOGGING_LEVEL="WARNING",
        VLLM_ALLOW_INSECURE_SERIALIZATION="1",  # the clock below is a function
    )  # fmt: skip


def serve(arguments: argparse.Namespace) -> dict:
    from vllm import LLM, SamplingParams

    with tempfile.TemporaryDirectory() as model:
        Path(model, "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
        llm = LLM(
            model=model, load_format="dummy", skip_tokenizer_init=True, seed=0,
            tensor_parallel_size=arguments.ranks, enforce_eager=True, max_model_len=512,
            gpu_memory_utilization=0.1, enable_prefix_caching=False,
        )  # fmt: skip
        if arguments.communicator == "gloo":
            assert set(llm.collective_rpc(use_gloo)) == {"gloo"}
        classes = set(llm.collective_rpc(start_clock))
        prompts = [
            {"prompt_token_ids": [3 + 7 * place + 13 * number for place in range(PROMPT_TOKENS)]}
            for number in range(PROMPTS)
        ]
        sampling = SamplingParams(
            temperature=0, max_tokens=NEW_TOKENS, ignore_eos=True, detokenize=False
        )
        batches = []
        for _ in range(1 + arguments.batches):
            llm.collective_rpc(read_clock)
            began = time.perf_counter()
            outputs = llm.generate(prompts, sampling, use_tqdm=False)
            seconds = time.perf_counter() - began
            batches.append((seconds, llm.collective_rpc(read_clock)))
        tokens = [list(output.outputs[0].token_ids) for output in outputs]
    return {
        "communicator": arguments.communicator,
        "classes": sorted(classes),
        "tokens": sum(map(len, tokens)),
        "digest": hashlib.sha256(json.dumps(tokens).encode()).hexdigest()[:16],
        "seconds": [seconds for seconds, _ in batches[1:]],
        "communication": [ranks for _, ranks in batches[1:]],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("communicator", choices=["own", "gloo", "towpath"])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--batches", type=int, default=3)
    arguments = parser.parse_args()
    prepare(arguments.ranks)
    print(json.dumps(serve(arguments)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
