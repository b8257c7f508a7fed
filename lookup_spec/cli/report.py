"""Speed, said in one line."""

from __future__ import annotations

from lookup_spec.stats import Stats


def summary(stats: Stats) -> str:
    """What a finished request cost."""
    rate = f"{stats.decode_tokens_per_second:.0f} tokens/s" if stats.decode_seconds else "no decoding"
    return (
        f"{stats.completion_tokens} tokens in {stats.prefill_seconds + stats.decode_seconds:.1f} s "
        f"({stats.prefill_seconds:.1f} s before the first), {rate}, "
        f"{stats.tokens_per_forward:.1f} tokens per forward pass"
    )
