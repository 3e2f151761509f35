"""What the tables of families are made of; make.py makes the models."""
from dataclasses import dataclass, field

# Small enough to check in. Heads are wider than width / heads, so that nobody computes the one from the other.
BASE = dict(vocab_size=80, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=12,
            max_position_embeddings=128, bos_token_id=1, eos_token_id=2, pad_token_id=0, initializer_range=0.02)


@dataclass
class Variant:
    changes: dict = field(default_factory=dict)  # keys of config.json beside BASE and the family's; None takes a key away
    dtype: str = "BF16"                          # of the weights: F32, F16, BF16
    v4: bool = False                             # config.json in the spelling of transformers 4 (rope_theta, rope_scaling, torch_dtype, no layer_types)
    drop: tuple = ()                             # keys left out of config.json: transformers' default must be ours
    add: dict = field(default_factory=dict)      # keys of config.json that transformers reads and does not write
    prompt: int = 40                             # tokens; longer than any window
    seed: int = 0
    gain: float = 1.5                            # how wide random matrices are, times 1 / sqrt(inputs)
    embed: float = 0.5                           # how wide embeddings are
    different: int = 5                           # tokens among the greedy ones, at least
    grows: bool = False                          # its rotation changes with each token: no greedy ones are compared
    files: dict = field(default_factory=dict)    # further JSON files of the folder; a Dense module gets random weights
    lost: str = ""                               # what GGUF has no place for, or its converter drops: no twin is made then


@dataclass
class Family:
    config: str                                  # classes of transformers
    model: str
    variants: dict                               # name: Variant
    common: dict = field(default_factory=dict)   # for all variants
    repack: object = None                        # tensors and config.json to those of a family that transformers does not have
    gives: str = "logits"                        # or embedding, or score
    kept: tuple = ()                             # ends of names of constants that stay in F32


def variant(dtype="BF16", v4=False, drop=(), add=None, prompt=40, seed=0, gain=1.5, embed=0.5, different=5, lost="", files=None, grows=False, **changes):
    return Variant(changes, dtype, v4, drop, add or {}, prompt, seed, gain, embed, different, grows, files or {}, lost)
