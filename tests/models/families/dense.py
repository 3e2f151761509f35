"""Dense decoders."""
from .base import Family, variant

LLAMA3 = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)

FAMILIES = {
    "llama": Family("LlamaConfig", "LlamaForCausalLM", gguf="llama", variants=dict(
        plain=variant("F32"),
        llama3=variant(rope_parameters=LLAMA3, tie_word_embeddings=True, attention_bias=True, mlp_bias=True),
        linear=variant("F16", v4=True, num_key_value_heads=4, head_dim=None, rope_parameters=dict(rope_type="linear", rope_theta=1000.0, factor=4.0)),
    )),
}
