"""Dense decoders."""
from .base import BASE, Family, variant


def rope(kind="default", theta=10000.0, **keys):
    return dict(rope_type=kind, rope_theta=theta, **keys)


LLAMA3 = rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)
YARN = rope("yarn", 1000.0, factor=4.0, original_max_position_embeddings=32, beta_fast=4.0, beta_slow=0.5)
LONG = dict(short_factor=[1.0, 1.1, 1.2, 1.4, 1.7, 2.0], long_factor=[1.0, 1.5, 2.0, 3.0, 4.0, 6.0])


def longrope(original, factors=LONG, **keys):
    return dict(original_max_position_embeddings=original,
                rope_parameters=rope("longrope", original_max_position_embeddings=original, **factors, **keys))


def per_kind(full, sliding):
    return dict(full_attention=full, sliding_attention=sliding)


def layers(pattern):
    return ["full_attention" if kind == "f" else "sliding_attention" for kind in pattern]


TEXT = {key: value for key, value in BASE.items() if key != "initializer_range"}
VISION = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2, image_size=16, patch_size=8)
SEEING = dict(vision_config=dict(VISION, model_type="siglip_vision_model"))

FAMILIES = {
    "llama": Family("LlamaConfig", "LlamaForCausalLM", variants=dict(
        plain=variant("F32"),
        llama3=variant(rope_parameters=LLAMA3, tie_word_embeddings=True, attention_bias=True, mlp_bias=True),
        linear=variant("F16", v4=True, num_key_value_heads=4, head_dim=None, rope_parameters=rope("linear", 1000.0, factor=4.0)),
        yarn=variant(num_key_value_heads=1, rope_parameters=YARN),
        stretched=variant(lost="the scaling", grows=True, max_position_embeddings=32, rope_parameters=rope("dynamic", factor=4.0)),
        dynamic=variant(lost="the activation", v4=True, rope_parameters=rope("dynamic", factor=2.0), rms_norm_eps=1e-5, hidden_act="gelu"),
    )),
    "mistral": Family("MistralConfig", "MistralForCausalLM", variants=dict(
        window=variant("F32", lost="the window", sliding_window=7),
        v4=variant(v4=True, sliding_window=None, tie_word_embeddings=True, num_key_value_heads=4, head_dim=None),
    )),
    "ministral": Family("MinistralConfig", "MinistralForCausalLM", variants=dict(
        mixed=variant(num_hidden_layers=3, sliding_window=9, layer_types=layers("fsf")),
    )),
    "ministral3": Family("Ministral3Config", "Ministral3ForCausalLM", variants=dict(
        scaled=variant(rope_parameters={**YARN, "original_max_position_embeddings": 8, "llama_4_scaling_beta": 0.4, "mscale": 1.0, "mscale_all_dim": 1.0}),
        tied=variant(lost="the window", tie_word_embeddings=True, sliding_window=11, num_key_value_heads=1,
                     rope_parameters={**YARN, "llama_4_scaling_beta": 0.1, "original_max_position_embeddings": 16}),
    )),
    "qwen2": Family("Qwen2Config", "Qwen2ForCausalLM", common=dict(head_dim=None), variants=dict(
        plain=variant(),
        window=variant(lost="the windows", num_hidden_layers=3, use_sliding_window=True, sliding_window=6, max_window_layers=1, tie_word_embeddings=True),
        yarn=variant("F16", v4=True, rope_parameters=YARN, num_key_value_heads=4),
        v4window=variant(lost="the windows", v4=True, num_hidden_layers=3, use_sliding_window=True, sliding_window=6, max_window_layers=2),
    )),
    "qwen3": Family("Qwen3Config", "Qwen3ForCausalLM", variants=dict(
        plain=variant("F32"),
        biased=variant(attention_bias=True, tie_word_embeddings=True, rope_parameters=YARN, num_key_value_heads=1),
        window=variant(lost="the windows", num_hidden_layers=3, use_sliding_window=True, sliding_window=6, layer_types=layers("sfs")),
        v4=variant("F16", v4=True, tie_word_embeddings=True),
    )),
    "gemma": Family("GemmaConfig", "GemmaForCausalLM", variants=dict(
        plain=variant(embed=0.1),
        mqa=variant(embed=0.1, v4=True, num_key_value_heads=1, head_dim=16),
    )),
    "gemma2": Family("Gemma2Config", "Gemma2ForCausalLM", common=dict(sliding_window=7), variants=dict(
        plain=variant(embed=0.3, different=2, query_pre_attn_scalar=12),
        scalar=variant(lost="the query scale", embed=0.3, different=2, query_pre_attn_scalar=24, attn_logit_softcapping=4.0, final_logit_softcapping=3.0, num_hidden_layers=3),
        brief=variant(embed=0.3, different=2, num_attention_heads=8, num_key_value_heads=4, head_dim=8, query_pre_attn_scalar=256, attn_logit_softcapping=50.0,
                      drop=("attn_logit_softcapping", "final_logit_softcapping", "num_attention_heads", "num_key_value_heads", "query_pre_attn_scalar", "rms_norm_eps"),
                      lost="the query scale"),
        v4=variant("F16", lost="that nothing is capped", embed=0.3, different=2, v4=True, query_pre_attn_scalar=12, attn_logit_softcapping=None, final_logit_softcapping=None),
    )),
    "gemma3": Family("Gemma3TextConfig", "Gemma3ForCausalLM", common=dict(sliding_window=7), variants=dict(
        plain=variant(embed=0.1, num_hidden_layers=6, query_pre_attn_scalar=12),
        scaled=variant(lost="the layers' kinds", embed=0.1, num_hidden_layers=3, layer_types=layers("sfs"), query_pre_attn_scalar=20, final_logit_softcapping=5.0,
                       rope_parameters=per_kind(rope("linear", 1000.0, factor=8.0), rope("linear", 100.0, factor=2.0))),
        v4=variant(embed=0.1, v4=True, num_hidden_layers=7, query_pre_attn_scalar=12, num_key_value_heads=1),
    )),
    "phi": Family("PhiConfig", "PhiForCausalLM", common=dict(head_dim=None, hidden_size=48), variants=dict(
        plain=variant(num_key_value_heads=4),
        normed=variant(v4=True, qk_layernorm=True, rope_parameters=rope(partial_rotary_factor=0.34)),
    )),
    "phi3": Family("Phi3Config", "Phi3ForCausalLM", common=dict(head_dim=None, hidden_size=48), variants=dict(
        plain=variant(sliding_window=9),
        long=variant(**longrope(32)),
        short=variant(v4=True, num_key_value_heads=4, tie_word_embeddings=True, **longrope(80)),
        partial=variant("F16", tie_word_embeddings=True, **longrope(32, {k: v[:4] for k, v in LONG.items()}, partial_rotary_factor=0.7)),
    )),
    "stablelm": Family("StableLmConfig", "StableLmForCausalLM", common=dict(head_dim=None, hidden_size=64), variants=dict(
        plain=variant(use_qkv_bias=True),
        normed=variant(qk_layernorm=True, use_parallel_residual=True, rope_parameters=rope(partial_rotary_factor=0.5)),
        v4=variant("F16", v4=True, num_key_value_heads=4, tie_word_embeddings=True),
    )),
    "olmo": Family("OlmoConfig", "OlmoForCausalLM", common=dict(head_dim=None), variants=dict(
        plain=variant(),
        clipped=variant(v4=True, clip_qkv=0.7, tie_word_embeddings=True, num_key_value_heads=4),
    )),
    "olmo2": Family("Olmo2Config", "Olmo2ForCausalLM", common=dict(head_dim=None), variants=dict(
        plain=variant(),
        biased=variant(embed=0.2, gain=2.5, v4=True, attention_bias=True, tie_word_embeddings=True, num_key_value_heads=4),
    )),
    "olmo3": Family("Olmo3Config", "Olmo3ForCausalLM", common=dict(head_dim=None, sliding_window=6), variants=dict(
        plain=variant(num_hidden_layers=4),
        yarn=variant(num_hidden_layers=3, layer_types=layers("fsf"), rope_parameters=per_kind(YARN, rope(theta=1000.0)), tie_word_embeddings=True),
        bases=variant(layer_types=layers("fs"), rope_parameters=per_kind(rope("linear", 100.0, factor=2.0), rope(theta=5000.0))),
    )),
    "granite": Family("GraniteConfig", "GraniteForCausalLM", common=dict(head_dim=None), variants=dict(
        plain=variant("F32", embedding_multiplier=3.0, logits_scaling=0.5, residual_multiplier=0.7, attention_multiplier=0.2),
        biased=variant(embed=0.05, gain=3.0, different=2, v4=True, attention_bias=True, mlp_bias=True, tie_word_embeddings=True, embedding_multiplier=12, logits_scaling=2.0,
                       residual_multiplier=0.22, attention_multiplier=0.4),
    )),
    "smollm3": Family("SmolLM3Config", "SmolLM3ForCausalLM", common=dict(head_dim=None), variants=dict(
        plain=variant(num_hidden_layers=4),
        mixed=variant(lost="which layers turn", num_hidden_layers=3, no_rope_layers=[0, 1, 0], use_sliding_window=True, sliding_window=7, layer_types=layers("sfs"),
                      attention_bias=True, mlp_bias=True, tie_word_embeddings=False, rope_parameters=YARN),
        v4=variant("F16", lost="which layers turn", v4=True, num_hidden_layers=3, no_rope_layer_interval=2, use_sliding_window=True, sliding_window=7),
        listed=variant("F32", lost="which layers turn", num_hidden_layers=2, use_sliding_window=False, sliding_window=7, layer_types=layers("sf")),
    )),
    "exaone4": Family("Exaone4Config", "Exaone4ForCausalLM", common=dict(head_dim=None), variants=dict(
        plain=variant(num_hidden_layers=4, sliding_window=6, rope_parameters=LLAMA3),
        full=variant(sliding_window=None, sliding_window_pattern=4, tie_word_embeddings=True, layer_types=layers("ff")),
        mixed=variant(num_hidden_layers=3, sliding_window=6, layer_types=layers("sfs")),
    )),
    "glm": Family("GlmConfig", "GlmForCausalLM", variants=dict(
        plain=variant(rms_norm_eps=1e-5, head_dim=8, rope_parameters=rope(partial_rotary_factor=0.5)),
        wide=variant("F16", lost="the size of a head", rope_parameters=rope(partial_rotary_factor=0.5)),
        bare=variant(lost="epsilon", v4=True, attention_bias=False, head_dim=8, tie_word_embeddings=True, rope_parameters=rope(partial_rotary_factor=1.0)),
    )),
    "glm4": Family("Glm4Config", "Glm4ForCausalLM", variants=dict(
        plain=variant("F32", rope_parameters=rope(partial_rotary_factor=0.5)),
        biased=variant(v4=True, attention_bias=True, tie_word_embeddings=True, rope_parameters=rope(partial_rotary_factor=0.34)),
        odd=variant(num_hidden_layers=1, tie_word_embeddings=True, rope_parameters=rope("linear", factor=2.0, partial_rotary_factor=0.3)),  # 3 columns: 4 turn
    )),
    "cohere": Family("CohereConfig", "CohereForCausalLM", common=dict(head_dim=None, logit_scale=0.3), variants=dict(
        plain=variant(),
        normed=variant(v4=True, use_qk_norm=True, attention_bias=True, num_key_value_heads=4),
    )),
    "cohere2": Family("Cohere2Config", "Cohere2ForCausalLM", common=dict(head_dim=None, sliding_window=6, logit_scale=0.3), variants=dict(
        plain=variant(num_hidden_layers=4),
        mixed=variant(num_hidden_layers=3, layer_types=layers("sfs"), attention_bias=True),
    )),
    "nemotron": Family("NemotronConfig", "NemotronForCausalLM", common=dict(head_dim=None, hidden_size=48), variants=dict(
        plain=variant(),
        biased=variant(v4=True, attention_bias=True, mlp_bias=True, tie_word_embeddings=True, rope_parameters=rope(partial_rotary_factor=0.34)),
    )),
    "starcoder2": Family("Starcoder2Config", "Starcoder2ForCausalLM", common=dict(head_dim=None), variants=dict(
        plain=variant(sliding_window=None),
        window=variant(lost="the window", v4=True, sliding_window=7, tie_word_embeddings=False, norm_epsilon=1e-4, num_key_value_heads=1),
        bare=variant(use_bias=False, sliding_window=None),
    )),
    "falcon": Family("FalconConfig", "FalconForCausalLM", variants=dict(
        multiquery=variant("F32", new_decoder_architecture=False, multi_query=True, parallel_attn=True, bias=False),
        grouped=variant(v4=True, new_decoder_architecture=True, num_kv_heads=2, bias=False, tie_word_embeddings=False),
        alibi=variant(new_decoder_architecture=False, multi_query=False, parallel_attn=False, alibi=True, bias=True),
        one_norm=variant("F16", new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1, ffn_hidden_size=40),
    )),
    "gpt2": Family("GPT2Config", "GPT2LMHeadModel", variants=dict(
        plain=variant("F32"),
        wide=variant(lost="the activation", n_inner=40, activation_function="relu", tie_word_embeddings=False),
        scaled=variant("F16", lost="the scale by layer", scale_attn_by_inverse_layer_idx=True, num_hidden_layers=3),
    )),
    "gpt_neox": Family("GPTNeoXConfig", "GPTNeoXForCausalLM", common=dict(hidden_size=64), variants=dict(
        plain=variant(),
        serial=variant(lost="the activation", use_parallel_residual=False, rope_parameters=rope(partial_rotary_factor=0.5), hidden_act="gelu_new", tie_word_embeddings=True),
    )),
    "gptj": Family("GPTJConfig", "GPTJForCausalLM", variants=dict(
        plain=variant(rotary_dim=4),
        wide=variant(rotary_dim=8, n_inner=40, hidden_size=48),
    )),
    "gpt_bigcode": Family("GPTBigCodeConfig", "GPTBigCodeForCausalLM", variants=dict(
        plain=variant(),
        heads=variant(lost="how heads are packed", multi_query=False, tie_word_embeddings=False, n_inner=40),
    )),
    "mpt": Family("MptConfig", "MptForCausalLM", common=dict(d_model=32, n_layers=2, n_heads=4, expansion_ratio=2, max_seq_len=128), variants=dict(
        plain=variant(),
    )),
    "bloom": Family("BloomConfig", "BloomForCausalLM", common=dict(hidden_size=32, n_layer=2, n_head=4), variants=dict(
        plain=variant(gain=3.0),
        odd=variant(n_head=3, hidden_size=36, tie_word_embeddings=False),
    )),
    "apertus": Family("ApertusConfig", "ApertusForCausalLM", common=dict(head_dim=None), variants=dict(
        plain=variant(rope_parameters=LLAMA3),
        tied=variant(v4=True, tie_word_embeddings=True, attention_bias=True, rope_parameters=rope()),  # no scaling is written: that of the class
    )),
    "helium": Family("HeliumConfig", "HeliumForCausalLM", variants=dict(
        plain=variant(head_dim=8),
        biased=variant(attention_bias=True, mlp_bias=True, tie_word_embeddings=True, head_dim=8),
    )),
    "seed_oss": Family("SeedOssConfig", "SeedOssForCausalLM", variants=dict(
        plain=variant(),
        biased=variant(v4=True, attention_bias=False, attention_out_bias=True, mlp_bias=True, tie_word_embeddings=True),
    )),
    "hunyuan": Family("HunYuanDenseV1Config", "HunYuanDenseV1ForCausalLM", variants=dict(
        plain=variant(),
        alpha=variant(v4=True, tie_word_embeddings=True, attention_bias=True, rope_parameters=rope("dynamic", alpha=100.0, factor=1.0)),
    )),
    "ernie4_5": Family("Ernie4_5Config", "Ernie4_5ForCausalLM", variants=dict(
        plain=variant(),
        biased=variant(v4=True, use_bias=True, tie_word_embeddings=False, head_dim=8),
    )),
    "arcee": Family("ArceeConfig", "ArceeForCausalLM", variants=dict(
        plain=variant(),
        biased=variant(v4=True, attention_bias=True, mlp_bias=True, tie_word_embeddings=True, rope_parameters=YARN),
    )),
    "vaultgemma": Family("VaultGemmaConfig", "VaultGemmaForCausalLM", variants=dict(
        plain=variant(embed=0.1, sliding_window=7, query_pre_attn_scalar=12),
    )),
    "gemma4": Family("Gemma4TextConfig", "Gemma4ForCausalLM", common=dict(sliding_window=7, hidden_size_per_layer_input=8, vocab_size_per_layer_input=80,
                                                                         num_kv_shared_layers=0, global_head_dim=16, head_dim=12), variants=dict(
        plain=variant(embed=0.1, num_hidden_layers=4, layer_types=layers("sssf")),
        shared=variant(embed=0.1, num_hidden_layers=5, layer_types=layers("sfssf"), num_kv_shared_layers=3, use_double_wide_mlp=True, final_logit_softcapping=5.0),
        bare=variant("F16", embed=0.1, num_hidden_layers=3, layer_types=layers("ssf"), hidden_size_per_layer_input=0, attention_k_eq_v=True,
                     num_global_key_value_heads=1),
        experts=variant(embed=0.1, num_hidden_layers=3, layer_types=layers("sff"), hidden_size_per_layer_input=0, enable_moe_block=True, num_experts=4,
                        top_k_experts=2, moe_intermediate_size=16, attention_k_eq_v=True, num_global_key_value_heads=1),
    )),
    "gemma3n": Family("Gemma3nTextConfig", "Gemma3nForCausalLM", common=dict(sliding_window=7, hidden_size_per_layer_input=8, vocab_size_per_layer_input=80,
                                                                           laurel_rank=4), variants=dict(
        plain=variant(embed=0.1, num_hidden_layers=5, num_kv_shared_layers=0, layer_types=layers("ssssf"), final_logit_softcapping=30.0),
        shared=variant(embed=0.1, num_hidden_layers=5, num_kv_shared_layers=3, layer_types=layers("sfssf"), intermediate_size=[48, 48, 40, 40, 48],
                       activation_sparsity_pattern=[0.95, 0.7, 0.0, 0.0, 0.0], final_logit_softcapping=5.0, lost="the layers' kinds"),
    )),
    # The text half of models that see, too: their configuration is one table deeper, their tensors have other prefixes.
    "gemma3_vision": Family("Gemma3Config", "Gemma3ForConditionalGeneration", common=dict(SEEING, mm_tokens_per_image=4, text_config=dict(
        TEXT, sliding_window=7, num_hidden_layers=6, query_pre_attn_scalar=12)), variants=dict(
        plain=variant(embed=0.1),
    )),
    "mistral3_vision": Family("Mistral3Config", "Mistral3ForConditionalGeneration", common=dict(
        vision_config=dict(VISION, model_type="pixtral", head_dim=4), text_config=dict(TEXT, model_type="mistral", sliding_window=None)), variants=dict(
        plain=variant(),
    )),
    "cwm": Family("CwmConfig", "CwmForCausalLM", common=dict(sliding_window=7, rope_parameters=LLAMA3), variants=dict(
        plain=variant("F32", num_hidden_layers=2),
        v4=variant("F16", v4=True, num_hidden_layers=5, tie_word_embeddings=True, head_dim=8, num_key_value_heads=1),
        mixed=variant(layer_types=layers("sfs"), num_hidden_layers=3, mlp_bias=False),
    )),
    "nanochat": Family("NanoChatConfig", "NanoChatForCausalLM", variants=dict(
        plain=variant(num_hidden_layers=2),
        biased=variant("F16", attention_bias=True, tie_word_embeddings=True, final_logit_softcapping=3.0, num_key_value_heads=1, rms_norm_eps=1e-5),
        single=variant("F32", final_logit_softcapping=None, num_key_value_heads=4, rope_parameters=rope("linear", 1000.0, factor=2.0)),
    )),
    "jais2": Family("Jais2Config", "Jais2ForCausalLM", common=dict(head_dim=None), variants=dict(
        plain=variant(num_key_value_heads=4),
        tied=variant("F32", lost="biases", tie_word_embeddings=True, attention_bias=False, mlp_bias=False, layer_norm_eps=1e-3),
    )),
    "hyperclovax": Family("HyperCLOVAXConfig", "HyperCLOVAXForCausalLM", common=dict(head_dim=None, embedding_multiplier=2.0, logits_scaling=0.7, residual_multiplier=0.6), variants=dict(
        plain=variant("F32"),
        scaled=variant(embed=0.1, attention_multiplier=0.2, attention_bias=True, mlp_bias=True, tie_word_embeddings=True),
        bare=variant("F16", v4=True, use_post_norm=False, num_key_value_heads=1, drop=("attention_multiplier",)),
    )),
    "youtu": Family("YoutuConfig", "YoutuForCausalLM", common=dict(head_dim=None, num_key_value_heads=4, kv_lora_rank=10, q_lora_rank=14, qk_nope_head_dim=6, qk_rope_head_dim=4,
                    v_head_dim=5), variants=dict(
        plain=variant("F32", pad_token_id=None),  # transformers empties the row of padding while it loads
        direct=variant("F16", v4=True, lost="rope_interleave", pad_token_id=None, q_lora_rank=None, tie_word_embeddings=False, attention_bias=True, rope_interleave=False),
    )),
    "codegen": Family("CodeGenConfig", "CodeGenForCausalLM", common=dict(n_embd=32, n_layer=2, n_head=4, n_positions=128, rotary_dim=4), variants=dict(
        plain=variant("F32"),
        wide=variant(n_inner=40, rotary_dim=8, tie_word_embeddings=True),
    )),
    "openai": Family("OpenAIGPTConfig", "OpenAIGPTLMHeadModel", common=dict(n_embd=32, n_layer=2, n_head=4, n_positions=128), variants=dict(
        plain=variant(tie_word_embeddings=False),
        silu=variant("F32", embed=0.3, afn="silu", layer_norm_epsilon=1e-3),
    )),
    "gpt_neo": Family("GPTNeoConfig", "GPTNeoForCausalLM", common=dict(num_heads=4, attention_types=[[["global", "local"], 1]], window_size=7), variants=dict(
        plain=variant("F32", embed=0.2, gain=1.2),
        wide=variant(embed=0.2, num_hidden_layers=3, attention_types=[[["local"], 2], [["global"], 1]], intermediate_size=40, tie_word_embeddings=False, activation_function="relu"),
    )),
    "opt": Family("OPTConfig", "OPTForCausalLM", common=dict(ffn_dim=48), variants=dict(
        plain=variant(embed=0.2),
        after=variant("F16", embed=0.3, do_layer_norm_before=False, word_embed_proj_dim=20, enable_bias=False),
        bare=variant("F32", layer_norm_elementwise_affine=False, tie_word_embeddings=False, activation_function="gelu"),
    )),
    "modernbert_decoder": Family("ModernBertDecoderConfig", "ModernBertDecoderForCausalLM", common=dict(local_attention=14, num_hidden_layers=4, head_dim=None, cls_token_id=1,
                                 sep_token_id=2), variants=dict(
        plain=variant(tie_word_embeddings=False),
        biased=variant("F32", num_hidden_layers=2, embed=0.3, norm_bias=True, attention_bias=True, mlp_bias=True, decoder_bias=False, classifier_bias=True, layer_types=layers("sf")),
    )),
    "minicpm3": Family("MiniCPM3Config", "MiniCPM3ForCausalLM", common=dict(head_dim=None, num_key_value_heads=4, kv_lora_rank=10, q_lora_rank=14, qk_nope_head_dim=6, qk_rope_head_dim=4), variants=dict(
        plain=variant(embed=0.1, tie_word_embeddings=False),
        long=variant("F32", embed=0.1, tie_word_embeddings=False, scale_emb=3.0, scale_depth=0.7, v_head_dim=5, dim_model_base=16, lost="scales", rope_parameters=rope(
            "longrope", original_max_position_embeddings=128, short_factor=[1.0, 1.2], long_factor=[1.0, 3.0])),
        direct=variant("F16", lost="q_proj", embed=0.1, gain=2.0, tie_word_embeddings=False, q_lora_rank=None, v4=True, hidden_size=64),
    )),
    "bitnet": Family("BitNetConfig", "BitNetForCausalLM", common=dict(head_dim=None), variants=dict(
        plain=variant(tie_word_embeddings=False),
        biased=variant("F32", attention_bias=True, tie_word_embeddings=True, num_key_value_heads=1),
    )),
    "biogpt": Family("BioGptConfig", "BioGptForCausalLM", variants=dict(
        plain=variant(tie_word_embeddings=False),
        raw=variant("F32", embed=0.3, scale_embedding=False, hidden_act="relu"),
    )),
}
