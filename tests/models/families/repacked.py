"""Families that transformers knows only through code of their authors. They compute what Llama does; their tensors are Llama's under other names."""
import re

import torch

from .base import Family, variant
from .dense import LLAMA3, rope
from .encoders import pooling


def renamed(tensors, rules):
    out = {}
    for name, value in tensors.items():
        for pattern, to in rules.items():
            name = re.sub(pattern, to, name)
        out[name] = value
    return out


def internlm2(tensors, config):
    """q heads of a group, then its k and its v."""
    group = config["num_attention_heads"] // config["num_key_value_heads"]
    for l in range(config["num_hidden_layers"]):
        q, k, v = (tensors.pop(f"model.layers.{l}.self_attn.{x}_proj.weight") for x in "qkv")
        size = (config["num_key_value_heads"], -1, q.shape[1])
        tensors[f"model.layers.{l}.attention.wqkv.weight"] = torch.cat([q.reshape(size), k.reshape(size), v.reshape(size)], 1).reshape(-1, q.shape[1])
        assert size[0] * group == config["num_attention_heads"]
    config = {**config, "architectures": ["InternLM2ForCausalLM"], "model_type": "internlm2"}
    return renamed(tensors, {"embed_tokens": "tok_embeddings", "self_attn.o_proj": "attention.wo", "input_layernorm": "attention_norm",
                             "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "feed_forward.w1", "mlp.down_proj": "feed_forward.w2",
                             "mlp.up_proj": "feed_forward.w3", "lm_head": "output"}), config


def baichuan(tensors, config):
    for l in range(config["num_hidden_layers"]):
        parts = [tensors.pop(f"model.layers.{l}.self_attn.{x}_proj.weight") for x in "qkv"]
        tensors[f"model.layers.{l}.self_attn.W_pack.weight"] = torch.cat(parts)
    config = {**config, "architectures": ["BaiChuanForCausalLM"], "model_type": "baichuan"}
    config.pop("num_key_value_heads")
    return tensors, config


def exaone(tensors, config):
    config = {**config, "architectures": ["ExaoneForCausalLM"], "model_type": "exaone"}
    for old, new in {"num_hidden_layers": "num_layers", "rms_norm_eps": "layer_norm_epsilon", "hidden_act": "activation_function"}.items():
        config[new] = config.pop(old)
    return renamed(tensors, {r"model\.layers": "transformer.h", r"model\.embed_tokens": "transformer.wte", r"model\.norm": "transformer.ln_f",
                             "input_layernorm": "ln_1", "post_attention_layernorm": "ln_2", "self_attn.o_proj": "attn.attention.out_proj",
                             "self_attn": "attn.attention", "gate_proj": "c_fc_0", "up_proj": "c_fc_1", "down_proj": "c_proj"}), config


def nomic(tensors, config):
    """The configuration as the model's own code spells it; the tensors are called so already."""
    config = {"architectures": ["NomicBertModel"], "model_type": "nomic_bert", "n_embd": config["hidden_size"], "n_head": config["num_attention_heads"],
              "n_inner": config["intermediate_size"], "n_layer": config["num_hidden_layers"], "n_positions": 2048, "max_trained_positions": 2048,
              "rotary_emb_base": config["rope_parameters"]["rope_theta"], "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False,
              "rotary_emb_scale_base": None, "rotary_scaling_factor": None, "activation_function": "swiglu", "layer_norm_epsilon": config["layer_norm_eps"],
              "causal": False, "prenorm": False, "qkv_proj_bias": False, "mlp_fc1_bias": False, "mlp_fc2_bias": False, "dtype": config["dtype"],
              "type_vocab_size": config["type_vocab_size"], "vocab_size": config["vocab_size"], "parallel_block": False, "use_rms_norm": False}
    return tensors, config


def internlm3(tensors, config):
    config = {**config, "architectures": ["InternLM3ForCausalLM"], "model_type": "internlm3"}
    config["qkv_bias"], config["bias"] = config.pop("attention_bias"), config.pop("mlp_bias")
    return tensors, config


def bailing(architecture):
    """Ling 2 and Sarvam: what GLM-4.5 computes, with q, k and v in one matrix."""
    def repack(tensors, config):
        for l in range(config["num_hidden_layers"]):
            for kind in ("weight", "bias"):
                names = [f"model.layers.{l}.self_attn.{x}_proj.{kind}" for x in "qkv"]
                if names[0] in tensors:
                    tensors[f"model.layers.{l}.attention.query_key_value.{kind}"] = torch.cat([tensors.pop(name) for name in names])
        config = {**config, "architectures": [architecture], "model_type": "bailing_moe", "use_qkv_bias": config.pop("attention_bias"), "score_function": "sigmoid"}
        config["num_experts"], config["num_shared_experts"] = config.pop("n_routed_experts"), config.pop("n_shared_experts")
        if architecture.startswith("Sarvam"):
            config.pop("partial_rotary_factor")  # heads turn as a whole there
        config.pop("num_mtp_layers", None), config.pop("num_nextn_predict_layers", None)
        return renamed(tensors, {"embed_tokens": "word_embeddings", "self_attn.o_proj": "attention.dense", "self_attn.q_norm": "attention.query_layernorm",
                                 "self_attn.k_norm": "attention.key_layernorm", "e_score_correction_bias": "expert_bias"}), config

    return repack


LING = dict(moe_intermediate_size=12, n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=1, first_k_dense_replace=1, use_qk_norm=True, n_group=4, topk_group=2)
LLAMA = ("LlamaConfig", "LlamaForCausalLM")

FAMILIES = {
    "internlm2": Family(*LLAMA, repack=internlm2, common=dict(head_dim=None), variants=dict(
        plain=variant("F16", v4=True, rope_parameters=rope("dynamic", factor=2.0)),
    )),
    "baichuan": Family(*LLAMA, repack=baichuan, common=dict(head_dim=None, num_key_value_heads=4), variants=dict(
        plain=variant(v4=True),
    )),
    "nomic_bert_own": Family("NomicBertConfig", "NomicBertModel", gives="embedding", repack=nomic, common=dict(head_dim=None), variants=dict(
        plain=variant(files=pooling("mean"), num_hidden_layers=3),
    )),
    "exaone": Family(*LLAMA, repack=exaone, common=dict(head_dim=None), variants=dict(
        plain=variant(v4=True, rope_parameters=LLAMA3, tie_word_embeddings=True),
    )),
    "internlm3": Family(*LLAMA, repack=internlm3, variants=dict(
        plain=variant(v4=True, rope_parameters=rope("dynamic", factor=6.0)),
        biased=variant("F16", attention_bias=True, mlp_bias=True, num_key_value_heads=1),
    )),
    "bailing_moe2": Family("Glm4MoeConfig", "Glm4MoeForCausalLM", repack=bailing("BailingMoeV2ForCausalLM"), common=LING, variants=dict(
        plain=variant(v4=True, rope_parameters=rope(partial_rotary_factor=0.5), head_dim=8),
        biased=variant("F16", attention_bias=True, n_shared_experts=2, routed_scaling_factor=2.5, tie_word_embeddings=True, rope_parameters=rope(theta=600.0, partial_rotary_factor=0.34)),
    )),
    "sarvam_moe": Family("Glm4MoeConfig", "Glm4MoeForCausalLM", repack=bailing("SarvamMoEForCausalLM"), common=LING, variants=dict(
        plain=variant(v4=True, rope_parameters=rope(partial_rotary_factor=1.0), n_group=1, topk_group=1, head_dim=8),
    )),
}
