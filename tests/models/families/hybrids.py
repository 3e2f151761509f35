"""Recurrent models, and hybrids of recurrence or short convolutions with attention."""
from .base import Family, variant
from .dense import rope

INFINITE = float("inf")


def kinds(pattern):
    return [{"m": "linear_attention", "f": "full_attention", "e": "moe", "-": "mlp", "c": "conv"}[letter] for letter in pattern]


SCAN = dict(mamba_n_heads=8, mamba_d_head=8, mamba_d_state=5, mamba_d_conv=4, mamba_expand=2, mamba_chunk_size=16)
DELTA = dict(linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=6, linear_value_head_dim=5, linear_conv_kernel_dim=4, num_hidden_layers=4,
             head_dim=12, attention_bias=False)
MIXED = dict(num_experts=6, num_experts_per_tok=2, moe_intermediate_size=12, shared_expert_intermediate_size=20)
SECTIONS = dict(mrope_section=[1, 1, 1], mrope_interleaved=True)
OLD = dict(layer_types=["mamba", "attention", "mamba"])  # as checkpoints say it
LATENT = dict(kv_lora_rank=10, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=5)

MULTIPLIED = dict(ssm_multipliers=[0.8, 1.2, 0.7, 1.4, 0.9], mlp_multipliers=[1.3, 0.6], key_multiplier=0.5, attention_out_multiplier=0.8, attention_in_multiplier=1.2,
                  ssm_in_multiplier=1.3, ssm_out_multiplier=0.7, embedding_multiplier=1.5, lm_head_multiplier=0.8)

FAMILIES = {
    "mamba": Family("MambaConfig", "MambaForCausalLM", common=dict(state_size=5, expand=2, time_step_rank=4), variants=dict(
        plain=variant(),
        biased=variant(use_bias=True, use_conv_bias=False, conv_kernel=3, state_size=7, tie_word_embeddings=True, time_step_rank="auto"),
    )),
    "falcon_mamba": Family("FalconMambaConfig", "FalconMambaForCausalLM", common=dict(state_size=5, expand=2, time_step_rank=4), variants=dict(
        plain=variant(),
        biased=variant(lost="mixer_rms_eps", use_bias=True, use_conv_bias=False, mixer_rms_eps=1e-3),
    )),
    "mamba2": Family("Mamba2Config", "Mamba2ForCausalLM", common=dict(num_heads=8, head_dim=8, n_groups=1, state_size=5, expand=2, chunk_size=16), variants=dict(
        plain=variant("F32"),
        grouped=variant(n_groups=4, use_bias=True, tie_word_embeddings=True, conv_kernel=3),
        limited=variant(lost="time_step_limit", n_groups=2, use_conv_bias=False, time_step_limit=(0.2, 0.9)),
    )),
    "granitemoehybrid": Family("GraniteMoeHybridConfig", "GraniteMoeHybridForCausalLM", common=dict(SCAN, head_dim=None, num_hidden_layers=3, layer_types=kinds("mfm"),
                               shared_intermediate_size=28, intermediate_size=12, num_local_experts=4, num_experts_per_tok=2, embedding_multiplier=2.0, logits_scaling=1.5,
                               residual_multiplier=0.6, attention_multiplier=0.3), variants=dict(
        plain=variant("F32", add=OLD),
        turned=variant(lost="position_embedding_type", position_embedding_type="rope", tie_word_embeddings=True, mamba_n_groups=2, attention_bias=True, mamba_proj_bias=True),
        full=variant(num_hidden_layers=2, layer_types=kinds("ff"), add=dict(layer_types=["attention"] * 2), num_local_experts=0, num_experts_per_tok=0, intermediate_size=28,
                     position_embedding_type="rope"),
        dense=variant(add=OLD, num_local_experts=0, num_experts_per_tok=0, mamba_conv_bias=False, num_key_value_heads=1),
    )),
    "bamba": Family("BambaConfig", "BambaForCausalLM", common=dict(SCAN, head_dim=None, num_hidden_layers=3, attn_layer_indices=[1]), variants=dict(
        plain=variant(add=dict(attn_rotary_emb=4), rope_parameters=rope(partial_rotary_factor=0.5)),
        grouped=variant(add=dict(attn_rotary_emb=4), mamba_n_groups=4, tie_word_embeddings=True, attention_bias=True, mlp_bias=True, mamba_proj_bias=True, mamba_conv_bias=False),
    )),
    "falcon_h1": Family("FalconH1Config", "FalconH1ForCausalLM", common=dict(SCAN, mamba_d_ssm=64), variants=dict(
        plain=variant(add=dict(head_dim=8), ssm_multipliers=[1.0] * 5, mlp_multipliers=[1.0, 1.0]),
        scaled=variant("F32", lost="multipliers, into the weights", **MULTIPLIED),
        normed=variant(lost="mamba_norm_before_gate", mamba_rms_norm=True, mamba_norm_before_gate=True, mamba_n_groups=2, tie_word_embeddings=True, projectors_bias=True,
                       **MULTIPLIED),
        gated=variant(seed=2, lost="biases", mamba_rms_norm=True, mamba_norm_before_gate=False, mamba_n_groups=4, mamba_proj_bias=True, attention_bias=True, mlp_bias=True, **MULTIPLIED),
    )),
    "nemotron_h": Family("NemotronHConfig", "NemotronHForCausalLM", common=dict(mamba_num_heads=8, mamba_head_dim=8, ssm_state_size=5, n_groups=2, chunk_size=16,
                         n_routed_experts=6, moe_intermediate_size=12, moe_shared_expert_intermediate_size=20), variants=dict(
        plain=variant(drop=("num_experts_per_tok",), layers_block_type=kinds("mf-m")),
        experts=variant(layers_block_type=kinds("mefem"), routed_scaling_factor=1.8, n_group=3, topk_group=2, tie_word_embeddings=True),
        latent=variant(layers_block_type=kinds("emf-"), moe_latent_size=16, norm_topk_prob=False, mamba_proj_bias=True, n_groups=1),
        pattern=variant(layers_block_type=kinds("m-f-"), mlp_bias=True, use_conv_bias=False, drop=("layers_block_type", "num_experts_per_tok"), add=dict(hybrid_override_pattern="M-*-")),
    )),
    "jamba": Family("JambaConfig", "JambaForCausalLM", common=dict(num_hidden_layers=4, attn_layer_period=3, attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1,
                    num_experts=4, mamba_d_state=5, mamba_expand=2, mamba_dt_rank=4, intermediate_size=20, head_dim=None), variants=dict(
        plain=variant(),
        dense=variant(num_experts=1, num_experts_per_tok=1, mamba_proj_bias=True, mamba_conv_bias=False, tie_word_embeddings=True),
    )),
    "lfm2": Family("Lfm2Config", "Lfm2ForCausalLM", common=dict(num_hidden_layers=3, layer_types=kinds("cfc"), block_multiple_of=8, head_dim=None), variants=dict(
        plain=variant("F32"),
        biased=variant(lost="conv_bias", conv_bias=True, conv_L_cache=4, block_auto_adjust_ff_dim=False, tie_word_embeddings=True, layer_types=kinds("ccf")),
        wide=variant("F16", block_ffn_dim_multiplier=1.3, num_key_value_heads=1),
        older=variant(drop=("layer_types",), add=dict(full_attn_idxs=[1]), lost="layer_types"),
    )),
    "lfm2_moe": Family("Lfm2MoeConfig", "Lfm2MoeForCausalLM", common=dict(num_hidden_layers=3, layer_types=kinds("cfc"), num_dense_layers=1, num_experts=6, num_experts_per_tok=2,
                       moe_intermediate_size=12, head_dim=None), variants=dict(
        plain=variant(),
        raw=variant(lost="conv_bias", norm_topk_prob=False, use_expert_bias=False, conv_bias=True, routed_scaling_factor=1.6, tie_word_embeddings=True),
    )),
    "qwen3_next": Family("Qwen3NextConfig", "Qwen3NextForCausalLM", common={**DELTA, **MIXED}, variants=dict(
        plain=variant("F32", layer_types=kinds("mfmf"), rope_parameters=rope(partial_rotary_factor=0.5)),
        raw=variant(norm_topk_prob=False, tie_word_embeddings=True, linear_num_key_heads=3, linear_num_value_heads=3, num_key_value_heads=1,
                    rope_parameters=rope(partial_rotary_factor=0.5), mlp_only_layers=[1]),
        sparse=variant(v4=True, decoder_sparse_step=2, rope_parameters=rope(partial_rotary_factor=0.5)),
    )),
    "qwen3_5_text": Family("Qwen3_5TextConfig", "Qwen3_5ForCausalLM", common=DELTA, variants=dict(
        plain=variant(layer_types=kinds("mfmf"), rope_parameters=rope(partial_rotary_factor=0.5, **SECTIONS)),
        tied=variant(tie_word_embeddings=True, linear_num_value_heads=6, linear_num_key_heads=3, num_key_value_heads=1, rope_parameters=rope(partial_rotary_factor=0.5, **SECTIONS)),
    )),
    "qwen3_5_moe_text": Family("Qwen3_5MoeTextConfig", "Qwen3_5MoeForCausalLM", common={**DELTA, **MIXED}, variants=dict(
        plain=variant(seed=3, layer_types=kinds("mfmf"), rope_parameters=rope(partial_rotary_factor=0.5, **SECTIONS)),
        tied=variant(tie_word_embeddings=True, linear_num_value_heads=2, rope_parameters=rope(partial_rotary_factor=0.5, **SECTIONS)),
    )),
    "kimi_linear": Family("KimiLinearConfig", "KimiLinearForCausalLM", common=dict(LATENT, num_local_experts=6, num_experts_per_tok=2, moe_intermediate_size=12, num_hidden_layers=3,
                          linear_head_dim=6, linear_num_heads=4, layer_types=kinds("mfm"), mlp_layer_types=["dense", "sparse", "sparse"], num_key_value_heads=4, head_dim=None), variants=dict(
        plain=variant(lost="names of dense layers"),
        grouped=variant(lost="names of dense layers", n_group=3, topk_group=2, tie_word_embeddings=True, norm_topk_prob=False, layer_types=kinds("mmf"), routed_scaling_factor=1.3, n_shared_experts=2),
    )),
    "olmo_hybrid": Family("OlmoHybridConfig", "OlmoHybridForCausalLM", common={k: v for k, v in DELTA.items() if k != "head_dim"}, variants=dict(
        plain=variant("F32", layer_types=kinds("mfmf")),
        turned=variant(seed=4, rope_parameters=rope(), tie_word_embeddings=True, linear_allow_neg_eigval=False, layer_types=kinds("fmmf"), linear_num_value_heads=2, attention_bias=True),
        older=variant("F16", drop=("layer_types", "linear_key_head_dim", "linear_num_key_heads", "linear_num_value_heads", "linear_value_head_dim"), linear_num_key_heads=None,
                      linear_num_value_heads=None, linear_key_head_dim=None, linear_value_head_dim=None, linear_conv_kernel_dim=3, num_key_value_heads=4),
    )),
    "bailing_hybrid": Family("BailingHybridConfig", "BailingHybridForCausalLM", common={**LATENT, "head_dim": 6, "num_local_experts": 6, "num_experts_per_tok": 2,
                             "moe_intermediate_size": 12, "num_hidden_layers": 3, "layer_group_size": 3, "first_k_dense_replace": 1, "num_key_value_heads": 4, "n_group": 1,
                             "topk_group": 1}, variants=dict(
        plain=variant(add=dict(no_kda_lora=True, gated_attention_proj_granularity_type="head_wise", moe_shared_expert_intermediate_size=12, score_function="sigmoid", norm_topk_prob=True,
                               num_experts_per_tok=2, head_dim=6, max_position_embeddings=128)),
        grouped=variant("F16", n_group=3, topk_group=2, q_lora_rank=14, n_shared_experts=2, norm_topk_prob=False, routed_scaling_factor=1.3, layer_types=kinds("fmm"),
                        mlp_layer_types=["sparse", "dense", "sparse"], short_conv_kernel_size=3, kda_lower_bound=-2.0, lost="layer_types"),
        soft=variant("F32", num_local_experts=4, kda_safe_gate=False, num_hidden_layers=2, layer_group_size=2, rope_parameters=rope(theta=1000.0), lost="kda_safe_gate"),
    )),
    "minimax": Family("MiniMaxConfig", "MiniMaxForCausalLM", common=dict(num_local_experts=4, num_experts_per_tok=2, intermediate_size=16, block_size=16,
                      num_hidden_layers=3), kept=("_decay", "slope_rate"), variants=dict(
        plain=variant(num_hidden_layers=8, layer_types=kinds("mmmmmmmf"), num_local_experts=2, intermediate_size=8, num_attention_heads=2, num_key_value_heads=1, head_dim=8,
                      add=dict(rotary_dim=8, layernorm_full_attention_alpha=1.0, layernorm_full_attention_beta=1.0, layernorm_linear_attention_alpha=1.0,
                               layernorm_linear_attention_beta=1.0, layernorm_mlp_alpha=1.0, layernorm_mlp_beta=1.0)),
        mixed=variant(layer_types=kinds("mmf"), lost="layer_types"),
        scaled=variant("F16", lost="alphas and betas", layer_types=kinds("mfm"), full_attn_alpha_factor=1.3, full_attn_beta_factor=0.8, linear_attn_alpha_factor=0.7, linear_attn_beta_factor=1.2,
                       mlp_alpha_factor=1.1, mlp_beta_factor=0.9, tie_word_embeddings=True, sliding_window=7, num_experts_per_tok=1),
        alone=variant("F32", lost="layer_types", num_hidden_layers=2, num_local_experts=3, layer_types=kinds("mf"), num_key_value_heads=1, num_attention_heads=3),
    )),
    "zamba2": Family("Zamba2Config", "Zamba2ForCausalLM", common=dict(head_dim=None, num_key_value_heads=4, mamba_d_state=5, n_mamba_heads=4, chunk_size=16, adapter_rank=3, intermediate_size=40,
                     num_hidden_layers=4), variants=dict(
        plain=variant(gain=1.0, layers_block_type=["linear_attention", "hybrid", "linear_attention", "hybrid"], tie_word_embeddings=False, use_mem_rope=True),
        blocks=variant("F16", gain=0.8, layers_block_type=["hybrid", "linear_attention", "hybrid", "hybrid"], mamba_expand=1, num_mem_blocks=2, use_shared_attention_adapter=True, mamba_ngroups=2,
                       add_bias_linear=True, num_attention_heads=2, num_key_value_heads=2),
        tied=variant("F32", num_hidden_layers=2, layers_block_type=["hybrid", "linear_attention"], tie_word_embeddings=True, time_step_min=0.3),
    )),
    "lfm3": Family("Lfm3Config", "Lfm3ForCausalLM", common=dict(num_hidden_layers=3, layer_types=["conv", "sliding_attention", "full_attention"], sliding_window=7), variants=dict(
        plain=variant(tie_word_embeddings=False),
        bare=variant("F16", tie_word_embeddings=False, use_sandwich_norm=False, use_attention_gate=False, conv_bias=True, conv_L_cache=3, num_key_value_heads=1),
        turned=variant("F32", num_hidden_layers=2, layer_types=["full_attention", "conv"], rope_parameters=dict(full_attention=rope(theta=500.0), sliding_attention=rope())),
    )),
}
