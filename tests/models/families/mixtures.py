"""Mixtures of experts."""
from .base import Family, variant
from .dense import YARN, layers, per_kind, rope

LATENT = dict(head_dim=None, num_key_value_heads=4, kv_lora_rank=10, q_lora_rank=14, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=5,
              moe_intermediate_size=12, n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=2, first_k_dense_replace=1, num_hidden_layers=3)
SIGMOID = dict(scoring_func="sigmoid")
GROUPED = dict(n_group=4, topk_group=2)
MIXED = dict(num_experts=6, num_experts_per_tok=2, moe_intermediate_size=20)
MSCALED = rope("yarn", 1000.0, factor=8.0, original_max_position_embeddings=16, beta_fast=4.0, beta_slow=0.5, mscale=0.7, mscale_all_dim=1.0)


FAMILIES = {
    "mixtral": Family("MixtralConfig", "MixtralForCausalLM", common=dict(num_local_experts=4, num_experts_per_tok=2), variants=dict(
        plain=variant("F32"),
        window=variant(sliding_window=6, tie_word_embeddings=True, num_key_value_heads=4, num_experts_per_tok=3, lost="sliding_window"),
        v4=variant("F16", v4=True, head_dim=None, num_local_experts=3, num_experts_per_tok=1, num_key_value_heads=1),
    )),
    "qwen2_moe": Family("Qwen2MoeConfig", "Qwen2MoeForCausalLM", common=dict(MIXED, head_dim=None, shared_expert_intermediate_size=24), variants=dict(
        plain=variant(),
        normed=variant(norm_topk_prob=True, tie_word_embeddings=True, mlp_only_layers=[0], num_hidden_layers=3, num_key_value_heads=4, lost="mlp_only_layers"),
        sparse=variant(v4=True, decoder_sparse_step=2, num_hidden_layers=4, num_experts_per_tok=4, lost="decoder_sparse_step"),
        unbiased=variant(lost="sliding_window", qkv_bias=False, use_sliding_window=True, sliding_window=6, max_window_layers=1, num_hidden_layers=3),
    )),
    "qwen3_moe": Family("Qwen3MoeConfig", "Qwen3MoeForCausalLM", common=MIXED, variants=dict(
        plain=variant(norm_topk_prob=True),
        raw=variant(lost="norm_topk_prob", norm_topk_prob=False, attention_bias=True, tie_word_embeddings=True, rope_parameters=YARN, num_experts_per_tok=4),
        dense=variant(seed=3, lost="mlp_only_layers", v4=True, norm_topk_prob=True, mlp_only_layers=[1], num_hidden_layers=3, decoder_sparse_step=1, num_key_value_heads=1),
        window=variant(lost="sliding_window", use_sliding_window=True, sliding_window=6, max_window_layers=1, num_hidden_layers=2),
    )),
    "olmoe": Family("OlmoeConfig", "OlmoeForCausalLM", common=dict(num_experts=6, num_experts_per_tok=3, intermediate_size=20, head_dim=None), variants=dict(
        plain=variant(),
        clipped=variant(lost="clip_qkv", clip_qkv=0.6, norm_topk_prob=True, tie_word_embeddings=True, num_key_value_heads=4),
        biased=variant("F16", v4=True, attention_bias=True),
    )),
    "granitemoe": Family("GraniteMoeConfig", "GraniteMoeForCausalLM", common=dict(num_local_experts=5, num_experts_per_tok=2, head_dim=None,
                         intermediate_size=20, embedding_multiplier=1.5, logits_scaling=2.0, residual_multiplier=0.7, attention_multiplier=0.2), variants=dict(
        plain=variant(),
        biased=variant(v4=True, attention_bias=True, tie_word_embeddings=True, num_experts_per_tok=3),
    )),
    "granitemoeshared": Family("GraniteMoeSharedConfig", "GraniteMoeSharedForCausalLM", common=dict(num_local_experts=5, num_experts_per_tok=2, head_dim=None,
                               intermediate_size=20, embedding_multiplier=2.0, logits_scaling=1.5, residual_multiplier=0.5, attention_multiplier=0.3), variants=dict(
        plain=variant(shared_intermediate_size=28),
        alone=variant(shared_intermediate_size=0, tie_word_embeddings=True),
    )),
    "gpt_oss": Family("GptOssConfig", "GptOssForCausalLM", common=dict(num_local_experts=4, num_experts_per_tok=2, sliding_window=7, intermediate_size=20,
                      swiglu_limit=1.5), variants=dict(
        plain=variant("F32", lost="swiglu_limit"),
        yarn=variant(lost="layer_types", num_hidden_layers=3, layer_types=layers("fss"), num_experts_per_tok=3, tie_word_embeddings=True,
                     rope_parameters=rope("yarn", 1000.0, factor=8.0, original_max_position_embeddings=16, beta_fast=4.0, beta_slow=0.5, truncate=False)),
        v4=variant(v4=True, num_key_value_heads=1, num_hidden_layers=3, swiglu_limit=7.0,
                   rope_parameters=rope("yarn", 1000.0, factor=4.0, original_max_position_embeddings=32, beta_fast=4.0, beta_slow=0.5, truncate=False)),
    )),
    "deepseek_v2": Family("DeepseekV2Config", "DeepseekV2ForCausalLM", common=LATENT, variants=dict(
        lite=variant(q_lora_rank=None, rope_parameters=MSCALED, lost="mscale"),
        grouped=variant(**GROUPED, topk_method="group_limited_greedy", routed_scaling_factor=2.5),
        v4=variant(lost="norm_topk_prob", v4=True, norm_topk_prob=True, attention_bias=True, n_shared_experts=1, first_k_dense_replace=0, num_hidden_layers=2, rope_parameters={**MSCALED, "mscale": 1.0}),
    )),
    "deepseek_v3": Family("DeepseekV3Config", "DeepseekV3ForCausalLM", common={**LATENT, **GROUPED}, variants=dict(
        plain=variant("F32", rope_parameters={**MSCALED, "mscale": 1.0}, add=SIGMOID),
        direct=variant(lost="rope_interleave", q_lora_rank=None, norm_topk_prob=False, rope_interleave=False, n_group=1, topk_group=1, tie_word_embeddings=True),
        v4=variant(v4=True, attention_bias=True, n_shared_experts=1, routed_scaling_factor=1.5, first_k_dense_replace=2, rope_parameters=MSCALED, lost="mscale"),
        kimi=variant("F16", add=SIGMOID, first_k_dense_replace=0, num_hidden_layers=2, n_group=1, topk_group=1, num_attention_heads=3, num_key_value_heads=3),
    )),
    "glm4_moe": Family("Glm4MoeConfig", "Glm4MoeForCausalLM", common=dict(head_dim=12, moe_intermediate_size=12, n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=1,
                       first_k_dense_replace=1, num_hidden_layers=3), variants=dict(
        plain=variant(rope_parameters=rope(partial_rotary_factor=0.5)),
        normed=variant(use_qk_norm=True, attention_bias=True, **GROUPED, routed_scaling_factor=1.7, rope_parameters=rope(partial_rotary_factor=0.5)),
        v4=variant(v4=True, norm_topk_prob=False, n_shared_experts=2, tie_word_embeddings=True, rope_parameters=rope(partial_rotary_factor=0.67)),
    )),
    "glm4_moe_lite": Family("Glm4MoeLiteConfig", "Glm4MoeLiteForCausalLM", common={k: v for k, v in LATENT.items() if k not in ("first_k_dense_replace", "head_dim")},
                            variants=dict(
        plain=variant(add=dict(SIGMOID, first_k_dense_replace=1)),
        direct=variant(add=dict(SIGMOID, first_k_dense_replace=1), q_lora_rank=None, attention_bias=True, tie_word_embeddings=True, **GROUPED, mlp_layer_types=["dense", "sparse", "sparse"]),
    )),
    "llama4_text": Family("Llama4TextConfig", "Llama4ForCausalLM", common=dict(num_local_experts=4, num_hidden_layers=4, intermediate_size=20, intermediate_size_mlp=28,
                          attention_chunk_size=8, floor_scale=4, attn_scale=0.3, pad_token_id=0), variants=dict(
        plain=variant("F32", no_rope_layer_interval=2, lost="no_rope_layer_interval"),
        scout=variant(attention_chunk_size=8192, floor_scale=8192, attn_scale=0.1, num_experts_per_tok=2),
        dense=variant(lost="attention_chunk_size", interleave_moe_layer_step=2, use_qk_norm=False, tie_word_embeddings=True, num_experts_per_tok=2, attention_chunk_size=16, attention_bias=True),
        cool=variant(lost="moe_layers", attn_temperature_tuning=False, moe_layers=[1, 2], num_key_value_heads=1,
                     rope_parameters=rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)),
    )),
    "minimax_m2": Family("MiniMaxM2Config", "MiniMaxM2ForCausalLM", common=dict(num_local_experts=6, num_experts_per_tok=2, intermediate_size=20), variants=dict(
        plain=variant(add=dict(rotary_dim=6), rope_parameters=rope(partial_rotary_factor=0.5)),
        tied=variant(add=dict(rotary_dim=8), tie_word_embeddings=True, num_experts_per_tok=4, num_key_value_heads=4, head_dim=8),
    )),
    "ernie4_5_moe": Family("Ernie4_5_MoeConfig", "Ernie4_5_MoeForCausalLM", common=dict(moe_num_experts=6, moe_k=3, moe_intermediate_size=12, num_hidden_layers=3,
                           head_dim=None), variants=dict(
        plain=variant(),
        biased=variant(lost="moe_layer_end_index", v4=True, use_bias=True, tie_word_embeddings=True, moe_num_shared_experts=1, moe_layer_start_index=0, moe_layer_end_index=1),
        every=variant(moe_num_shared_experts=0, moe_layer_interval=2, num_hidden_layers=4),
    )),
    "hunyuan_v1_moe": Family("HunYuanMoEV1Config", "HunYuanMoEV1ForCausalLM", common=dict(num_experts=4, moe_topk=2, intermediate_size=20), variants=dict(
        plain=variant(add=dict(moe_intermediate_size=[20, 20], moe_topk=[2, 2], num_shared_expert=[1, 1])),
        biased=variant(v4=True, attention_bias=True, tie_word_embeddings=True, moe_topk=1, num_key_value_heads=1, add=dict(moe_intermediate_size=[20, 20], moe_topk=[1, 1], num_shared_expert=[1, 1])),
        alpha=variant(rope_parameters=rope("dynamic", alpha=50.0, factor=1.0), head_dim=8, lost="alpha"),
    )),
    "dots1": Family("Dots1Config", "Dots1ForCausalLM", common=dict(n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=2, moe_intermediate_size=12,
                    first_k_dense_replace=1, num_hidden_layers=3), variants=dict(
        plain=variant(norm_topk_prob=True, routed_scaling_factor=2.5, sliding_window=None),
        grouped=variant(lost="layer_types", **GROUPED, attention_bias=True, tie_word_embeddings=True, sliding_window=6, layer_types=layers("fsf")),
    )),
    "phimoe": Family("PhimoeConfig", "PhimoeForCausalLM", common=dict(num_local_experts=6, intermediate_size=20, head_dim=None), variants=dict(
        plain=variant(add=dict(original_max_position_embeddings=128)),
        longrope=variant(lost="short_mscale", rope_parameters=rope("longrope", 1000.0, original_max_position_embeddings=128, short_mscale=1.2, long_mscale=1.3, short_factor=[1.0, 1.2, 1.5, 2.0],
                                                                  long_factor=[1.0, 2.0, 3.0, 4.0])),
        biased=variant(attention_bias=True, lm_head_bias=True, router_jitter_noise=0.2, lost="router_jitter_noise", sliding_window=9, num_key_value_heads=4),
    )),
    "flex_olmo": Family("FlexOlmoConfig", "FlexOlmoForCausalLM", common=dict(num_experts=5, num_experts_per_tok=2, intermediate_size=20, head_dim=None), variants=dict(
        plain=variant(),
        normed=variant(norm_topk_prob=True, tie_word_embeddings=True, attention_bias=True),
    )),
    "mistral4": Family("Mistral4Config", "Mistral4ForCausalLM", common=LATENT, variants=dict(
        plain=variant(rope_parameters={**YARN, "original_max_position_embeddings": 8, "llama_4_scaling_beta": 0.4}, lost="llama.cpp does not know it"),
        grouped=variant(**GROUPED, q_lora_rank=None, tie_word_embeddings=True, norm_topk_prob=False, lost="llama.cpp does not know it",
                        rope_parameters={**YARN, "llama_4_scaling_beta": 0.1, "mscale": 1.0, "mscale_all_dim": 1.0}),
    )),
    "solar_open": Family("SolarOpenConfig", "SolarOpenForCausalLM", common=dict(moe_intermediate_size=12, n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=1),
                         variants=dict(
        plain=variant(rope_parameters=rope(partial_rotary_factor=1.0)),
        grouped=variant(**GROUPED, attention_bias=True, tie_word_embeddings=True, n_shared_experts=2, rope_parameters=rope(partial_rotary_factor=1.0)),
    )),
    "exaone_moe": Family("ExaoneMoeConfig", "ExaoneMoeForCausalLM", common=dict(moe_intermediate_size=12, num_experts=8, num_experts_per_tok=3, num_hidden_layers=4,
                         sliding_window=7), variants=dict(
        plain=variant(layer_types=layers("sssf")),
        grouped=variant(seed=2, **GROUPED, tie_word_embeddings=True, num_shared_experts=2, layer_types=layers("fsfs"), norm_topk_prob=False),
    )),
    "afmoe": Family("AfmoeConfig", "AfmoeForCausalLM", common=dict(MIXED, num_shared_experts=1, num_dense_layers=1, moe_intermediate_size=12, sliding_window=7,
                    num_hidden_layers=4, route_scale=1.7), variants=dict(
        plain=variant(mup_enabled=True, add=dict(route_norm=True, score_func="sigmoid")),
        tied=variant("F32", lost="mup_enabled, attention_bias", num_experts=4, layer_types=layers("sfs"), num_hidden_layers=3, num_dense_layers=0, num_shared_experts=2, num_experts_per_tok=3,
                     attention_bias=True, tie_word_embeddings=True),
        every=variant("F16", lost="global_attn_every_n_layers", v4=True, mup_enabled=True, global_attn_every_n_layers=2, num_key_value_heads=4, num_hidden_layers=3),
    )),
    "cohere2_moe": Family("Cohere2MoeConfig", "Cohere2MoeForCausalLM", common=dict(num_experts=6, num_experts_per_tok=2, intermediate_size=12, sliding_window=7,
                          num_hidden_layers=4, logit_scale=0.5, prefix_dense_intermediate_size=24, tie_word_embeddings=True, first_k_dense_replace=1), variants=dict(
        plain=variant(expert_selection_fn="sigmoid"),
        shared=variant(rms_norm_eps=1e-5, num_shared_experts=2, sliding_window_pattern=2, num_key_value_heads=1, expert_selection_fn="sigmoid", norm_topk_prob=False),
        prefix=variant("F16", lost="dense layers that do not turn, tensors of biases", attention_bias=True, first_k_dense_replace=2, prefix_dense_sliding_window_pattern=2,
                       num_shared_experts=1, shared_expert_combination_strategy="sum", tie_word_embeddings=False),
        older=variant("F32", num_experts=4, num_hidden_layers=3, v4=True, first_k_dense_replace=0, layer_types=layers("fss"), drop=("norm_topk_prob", "prefix_dense_sliding_window_pattern"),
                      lost="layer_types"),
    )),
    "mimo_v2_flash": Family("MiMoV2FlashConfig", "MiMoV2FlashForCausalLM", common=dict(n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=12, v_head_dim=7,
                            sliding_window=7, num_hidden_layers=3, num_key_value_heads=1), variants=dict(
        plain=variant("F32", add=dict(sliding_window_size=5), rope_parameters=per_kind(rope(theta=50000.0, partial_rotary_factor=0.5), rope(theta=100.0, partial_rotary_factor=0.5)), lost="spelling"),
        grouped=variant("F16", lost="spelling", n_group=3, topk_group=2, attention_bias=True, tie_word_embeddings=True, layer_types=layers("sfs"), attention_value_scale=None,
                        mlp_layer_types=["sparse", "sparse", "dense"], norm_topk_prob=False, routed_scaling_factor=1.6, num_attention_heads=6, num_key_value_heads=3,
                        rope_parameters=per_kind(rope(theta=50000.0, partial_rotary_factor=0.334), rope(theta=100.0, partial_rotary_factor=0.7))),
        hub=variant(drop=("layer_types", "mlp_layer_types", "rope_parameters", "rms_norm_eps"), add=dict(
            hybrid_layer_pattern=[0, 1, 1], moe_layer_freq=[0, 1, 1], swa_num_key_value_heads=2, swa_head_dim=12, swa_v_head_dim=7, swa_num_attention_heads=4, rope_theta=5000000,
            swa_rope_theta=10000, partial_rotary_factor=0.334, topk_method="noaux_tc", scoring_func="sigmoid", layernorm_epsilon=1e-5,
            routed_scaling_factor=None)),
    )),
    "mellum": Family("MellumConfig", "MellumForCausalLM", common=dict(MIXED, moe_intermediate_size=12, sliding_window=7, num_hidden_layers=4), variants=dict(
        plain=variant(layer_types=layers("sssf"), rope_parameters=per_kind(rope(theta=50000.0), rope(theta=100.0))),
        mixed=variant("F16", lost="the local rotation, dense layers", layer_types=layers("fsf"), num_hidden_layers=3, mlp_layer_types=["dense", "sparse", "sparse"], attention_bias=True,
                      tie_word_embeddings=True, norm_topk_prob=False, num_key_value_heads=1, rope_parameters=per_kind(YARN, rope(theta=100.0))),
        full=variant("F32", num_experts=4, num_hidden_layers=2, sliding_window=None),
    )),
    "laguna": Family("LagunaConfig", "LagunaForCausalLM", common=dict(MIXED, moe_intermediate_size=12, shared_expert_intermediate_size=16, sliding_window=7, num_hidden_layers=3), variants=dict(
        plain=variant(layer_types=layers("fss"), num_attention_heads_per_layer=[4, 6, 2], moe_routed_scaling_factor=1.5,
                      rope_parameters=per_kind({**YARN, "partial_rotary_factor": 0.5}, rope(theta=100.0, partial_rotary_factor=1.0))),
        element=variant("F16", lost="layer_types, softcap", layer_types=layers("sfs"), gating="per-element", moe_router_logit_softcapping=2.0, tie_word_embeddings=True, attention_bias=True,
                        mlp_layer_types=["sparse", "dense", "sparse"], rope_parameters=per_kind(rope(theta=50000.0, partial_rotary_factor=0.7), rope(theta=100.0, partial_rotary_factor=0.34))),
        full=variant("F32", num_experts=4, num_hidden_layers=2, gating="per-element", lost="layer_types"),
    )),
    "granite_swa": Family("GraniteSWAConfig", "GraniteSWAForCausalLM", common=dict(head_dim=None, sliding_window=7, embedding_multiplier=2.0, logits_scaling=1.5, residual_multiplier=0.6,
                          attention_multiplier=0.3), variants=dict(
        plain=variant(num_hidden_layers=3, tie_word_embeddings=False),
        turned=variant("F16", embed=0.2, layer_types=layers("sfs"), num_hidden_layers=3, layer_rope_theta=[0, 5000.0, 5000.0], attention_bias=True, mlp_bias=True, num_key_value_heads=1,
                       lost="layer_rope_theta"),
        single=variant("F32", num_key_value_heads=4, rope_parameters=rope("linear", 1000.0, factor=4.0), tie_word_embeddings=False),
    )),
    "granitemoe_swa": Family("GraniteMoeSWAConfig", "GraniteMoeSWAForCausalLM", common=dict(head_dim=None, sliding_window=7, num_local_experts=5, num_experts_per_tok=2, intermediate_size=20,
                             embedding_multiplier=2.0, logits_scaling=1.5, residual_multiplier=0.6, attention_multiplier=0.3, tie_word_embeddings=False), variants=dict(
        plain=variant(),
        shared=variant("F16", shared_intermediate_size=28, layer_types=layers("sf"), layer_rope_theta=[10000.0, 0], lost="layer_rope_theta"),
    )),
    "hy_v3": Family("HYV3Config", "HYV3ForCausalLM", common=dict(MIXED, moe_intermediate_size=12), variants=dict(
        plain=variant(add=dict(first_k_dense_replace=1)),
        shared=variant("F16", num_shared_experts=2, attention_bias=True, tie_word_embeddings=True, router_scaling_factor=1.3, mlp_layer_types=["sparse", "dense"], num_key_value_heads=1),
        alone=variant("F32", mlp_bias=True, num_experts=4, mlp_layer_types=["sparse", "dense"], num_key_value_heads=4, drop=("router_scaling_factor",), router_scaling_factor=2.826),
    )),
    "flint": Family("FlintConfig", "FlintForCausalLM", common=dict(MIXED, moe_intermediate_size=12, shared_expert_intermediate_size=16, sliding_window=7, mlp_only_layers=[0],
                    num_hidden_layers=3), variants=dict(
        plain=variant(layer_types=layers("ssf")),
        raw=variant("F16", layer_types=layers("sfs"), norm_topk_prob=False, attention_bias=True, tie_word_embeddings=True, mlp_only_layers=[], num_key_value_heads=1),
    )),
    "dbrx": Family("DbrxConfig", "DbrxForCausalLM", common=dict(d_model=32, n_heads=4, n_layers=2, max_seq_len=128), variants=dict(
        plain=variant(attn_config=dict(kv_n_heads=2, clip_qkv=0.8, rope_theta=10000.0), ffn_config=dict(hidden_size=32, ffn_hidden_size=20, moe_num_experts=4, moe_top_k=2)),
        raw=variant("F32", attn_config=dict(kv_n_heads=1, rope_theta=500.0, clip_qkv=8.0), ffn_config=dict(hidden_size=32, ffn_hidden_size=12, moe_num_experts=3, moe_top_k=2, moe_normalize_expert_weights=None),
                    lost="raw weights"),
    )),
}
