#!/usr/bin/env python3
"""Writes hf/NAME.json: the configuration and the tensor headers of a tiny random model of each family, as transformers saves it.

    python make_fixtures.py [names...]        needs torch, transformers, safetensors; the tests need only the JSON files

The files hold metadata only; programs are built from them without weights.
"""
import json
import os
import struct
import sys
import tempfile

import torch
import transformers

HERE = os.path.dirname(os.path.abspath(__file__))
BASE = dict(vocab_size=96, hidden_size=64, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=128, bos_token_id=1, eos_token_id=2, pad_token_id=0)
MOE = dict(num_experts=4, num_local_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, norm_topk_prob=True)
VISION = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2, image_size=16, patch_size=8)
MLA = dict(kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=16, first_k_dense_replace=1, n_routed_experts=8, n_shared_experts=1,
           num_experts_per_tok=2, moe_intermediate_size=32, n_group=2, topk_group=1, num_key_value_heads=4, head_dim=8)
HYBRID = dict(linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16, linear_value_head_dim=16, linear_conv_kernel_dim=4, head_dim=16,
              shared_expert_intermediate_size=32, decoder_sparse_step=1, num_hidden_layers=4)

# name of the fixture: configuration class, model class, what differs from BASE (None: not a key of this class)
MODELS = {
    "llama": ("LlamaConfig", "LlamaForCausalLM", dict(rope_parameters=dict(rope_type="llama3", rope_theta=5e5, factor=8.0, low_freq_factor=1.0,
                                                                              high_freq_factor=4.0, original_max_position_embeddings=64))),
    "mistral": ("MistralConfig", "MistralForCausalLM", dict(sliding_window=32)),
    "mixtral": ("MixtralConfig", "MixtralForCausalLM", MOE),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", {}),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", dict(head_dim=32)),
    "qwen2_moe": ("Qwen2MoeConfig", "Qwen2MoeForCausalLM", dict(MOE, shared_expert_intermediate_size=32)),
    "qwen3_moe": ("Qwen3MoeConfig", "Qwen3MoeForCausalLM", dict(MOE, head_dim=16)),
    "qwen3_next": ("Qwen3NextConfig", "Qwen3NextForCausalLM", dict(MOE, **HYBRID)),
    "gemma": ("GemmaConfig", "GemmaForCausalLM", dict(head_dim=32)),
    "gemma2": ("Gemma2Config", "Gemma2ForCausalLM", dict(head_dim=32, sliding_window=32, query_pre_attn_scalar=16)),
    "gemma3": ("Gemma3TextConfig", "Gemma3ForCausalLM", dict(head_dim=32, sliding_window=32, num_hidden_layers=7, query_pre_attn_scalar=16)),
    "phi3": ("Phi3Config", "Phi3ForCausalLM", dict(original_max_position_embeddings=64, rope_parameters=dict(
        rope_type="longrope", rope_theta=10000.0, short_factor=[1.0] * 8, long_factor=[2.0] * 8, partial_rotary_factor=1.0,
        original_max_position_embeddings=64))),
    "phi": ("PhiConfig", "PhiForCausalLM", dict(num_key_value_heads=4)),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", dict(n_embd=64, n_layer=2, n_head=4, n_positions=128)),
    "gpt_neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", {}),
    "gpt_oss": ("GptOssConfig", "GptOssForCausalLM", dict(MOE, head_dim=16, sliding_window=32)),
    "falcon": ("FalconConfig", "FalconForCausalLM", dict(new_decoder_architecture=True, num_kv_heads=2)),
    "starcoder2": ("Starcoder2Config", "Starcoder2ForCausalLM", {}),
    "stablelm": ("StableLmConfig", "StableLmForCausalLM", dict(use_parallel_residual=False)),
    "cohere": ("CohereConfig", "CohereForCausalLM", {}),
    "cohere2": ("Cohere2Config", "Cohere2ForCausalLM", dict(sliding_window=32, num_hidden_layers=4)),
    "olmo2": ("Olmo2Config", "Olmo2ForCausalLM", {}),
    "olmoe": ("OlmoeConfig", "OlmoeForCausalLM", MOE),
    "granite": ("GraniteConfig", "GraniteForCausalLM", {}),
    "granitemoe": ("GraniteMoeConfig", "GraniteMoeForCausalLM", MOE),
    "nemotron": ("NemotronConfig", "NemotronForCausalLM", {}),
    "glm4": ("Glm4Config", "Glm4ForCausalLM", dict(head_dim=16)),
    "glm4_moe": ("Glm4MoeConfig", "Glm4MoeForCausalLM", dict(MOE, head_dim=16, n_routed_experts=4, n_shared_experts=1, first_k_dense_replace=1)),
    "exaone4": ("Exaone4Config", "Exaone4ForCausalLM", dict(sliding_window=32, num_hidden_layers=4)),
    "smollm3": ("SmolLM3Config", "SmolLM3ForCausalLM", dict(num_hidden_layers=4)),
    "lfm2": ("Lfm2Config", "Lfm2ForCausalLM", dict(layer_types=["conv", "full_attention"])),
    "mamba": ("MambaConfig", "MambaForCausalLM", dict(state_size=8)),
    "mamba2": ("Mamba2Config", "Mamba2ForCausalLM", dict(num_heads=8, head_dim=16, state_size=8, n_groups=2)),
    "deepseek_v2": ("DeepseekV2Config", "DeepseekV2ForCausalLM", dict(MLA, q_lora_rank=None, topk_method="greedy")),
    "deepseek_v3": ("DeepseekV3Config", "DeepseekV3ForCausalLM", dict(MLA, q_lora_rank=24)),
    "bert": ("BertConfig", "BertModel", {}),
    "olmo3": ("Olmo3Config", "Olmo3ForCausalLM", dict(num_hidden_layers=4, sliding_window=32)),
    "qwen3_5": ("Qwen3_5TextConfig", "Qwen3_5ForCausalLM", dict(HYBRID, rope_parameters=dict(
        rope_type="default", rope_theta=1e7, partial_rotary_factor=0.5, mrope_section=[2, 1, 1], mrope_interleaved=True))),
    "llava": ("LlavaConfig", "LlavaForConditionalGeneration", dict(
        text_config=dict(BASE, model_type="llama"), vision_config=dict(VISION, model_type="clip_vision_model", projection_dim=32))),
    "qwen2_5_vl": ("Qwen2_5_VLConfig", "Qwen2_5_VLForConditionalGeneration", dict(
        text_config=dict(BASE, rope_parameters=dict(rope_type="default", rope_theta=1e6, mrope_section=[2, 3, 3])),
        vision_config=dict(depth=2, hidden_size=32, intermediate_size=48, num_heads=2, out_hidden_size=64, fullatt_block_indexes=[1]))),
    "qwen3_vl": ("Qwen3VLConfig", "Qwen3VLForConditionalGeneration", dict(
        text_config=dict(BASE, head_dim=16, rope_parameters=dict(rope_type="default", rope_theta=1e6, mrope_section=[4, 2, 2], mrope_interleaved=True)),
        vision_config=dict(depth=2, hidden_size=32, intermediate_size=48, num_heads=2, out_hidden_size=64, deepstack_visual_indexes=[0],
                           num_position_embeddings=16))),
    "qwen3_vl_moe": ("Qwen3VLMoeConfig", "Qwen3VLMoeForConditionalGeneration", dict(
        text_config=dict(BASE, **MOE, head_dim=16, rope_parameters=dict(rope_type="default", rope_theta=1e6, mrope_section=[4, 2, 2], mrope_interleaved=True)),
        vision_config=dict(depth=2, hidden_size=32, intermediate_size=48, num_heads=2, out_hidden_size=64, deepstack_visual_indexes=[0],
                           num_position_embeddings=16))),
    "qwen3_5_moe": ("Qwen3_5MoeConfig", "Qwen3_5MoeForConditionalGeneration", dict(
        text_config=dict({k: v for k, v in BASE.items() if k != "intermediate_size"}, **HYBRID, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32,
                         rope_parameters=dict(rope_type="default", rope_theta=1e7, partial_rotary_factor=0.5, mrope_section=[2, 1, 1], mrope_interleaved=True)),
        vision_config=dict(depth=2, hidden_size=32, intermediate_size=48, num_heads=2, out_hidden_size=64, num_position_embeddings=16))),
    "llama4": ("Llama4Config", "Llama4ForConditionalGeneration", dict(
        text_config=dict(BASE, num_hidden_layers=4, head_dim=16, num_local_experts=4, intermediate_size_mlp=96, attention_chunk_size=32),
        vision_config=dict(VISION, vision_output_dim=32, projector_input_dim=32, projector_output_dim=32))),
    "gemma3_image": ("Gemma3Config", "Gemma3ForConditionalGeneration", dict(
        text_config=dict(BASE, head_dim=32, sliding_window=32, num_hidden_layers=7), vision_config=dict(VISION), mm_tokens_per_image=4)),
    "mistral3_image": ("Mistral3Config", "Mistral3ForConditionalGeneration", dict(
        text_config=dict(BASE, head_dim=32, model_type="mistral"), vision_config=dict(VISION, head_dim=16, model_type="pixtral"))),
}


def headers(folder):
    out = []
    for file in sorted(os.listdir(folder)):
        if file.endswith(".safetensors"):
            with open(f"{folder}/{file}", "rb") as f:
                head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
            out += [[name, t["dtype"].lower(), t["shape"]] for name, t in sorted(head.items()) if name != "__metadata__"]
    return out


def main():
    for name in sys.argv[1:] or MODELS:
        config_class, model_class, changes = MODELS[name]
        config = getattr(transformers, config_class)(**(changes if "text_config" in changes else {**BASE, **changes}))
        torch.manual_seed(0)
        with tempfile.TemporaryDirectory() as folder:
            getattr(transformers, model_class)(config).to(torch.bfloat16).save_pretrained(folder)
            with open(f"{folder}/config.json") as f:
                saved = json.load(f)
            tensors = headers(folder)
        outputs = '  "outputs": ["embedding"],\n' if name == "bert" else ""
        rows = ",\n".join("    " + json.dumps(row) for row in tensors)
        with open(f"{HERE}/hf/{name}.json", "w") as f:
            f.write('{\n  "format": "hf",\n' + outputs + '  "config": ' + json.dumps(saved, sort_keys=True) + ',\n  "tensors": [\n' + rows + "\n  ]\n}\n")
        print(name, len(tensors))


main()
