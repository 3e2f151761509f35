"""Encoders, and what is made of them: embeddings and rerankers."""
from .base import Family, variant


MODES = dict(cls="cls_token", mean="mean_tokens", max="max_tokens", mean_sqrt_len="mean_sqrt_len_tokens", weightedmean="weightedmean_tokens", last="lasttoken")


def pooling(kind):
    """A sentence-transformers folder that pools so."""
    return {"modules.json": [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                             {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}],
            "1_Pooling/config.json": {"word_embedding_dimension": 32, **{f"pooling_mode_{name}": name == MODES[kind] for name in MODES.values()}}}


def dense(*sizes):
    """Mean pooling, and linears behind it."""
    files = pooling("mean")
    for n, (inputs, outputs) in enumerate(zip(sizes[:-1], sizes[1:]), 2):
        files["modules.json"].append({"idx": n, "name": str(n), "path": f"{n}_Dense", "type": "sentence_transformers.models.Dense"})
        files[f"{n}_Dense/config.json"] = {"in_features": inputs, "out_features": outputs, "bias": False,
                                           "activation_function": "torch.nn.modules.linear.Identity"}
    return files


ROPES = dict(full_attention=dict(rope_type="default", rope_theta=1000.0), sliding_attention=dict(rope_type="default", rope_theta=100.0))
DISTIL = dict(dim=32, hidden_dim=48, n_layers=2, n_heads=4)
ONE = dict(num_labels=1)



def first_names(tensors, config):
    """As the first files of BERT call its norms."""
    return {name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value for name, value in tensors.items()}, config


FAMILIES = {
    "bert": Family("BertConfig", "BertModel", gives="embedding", variants=dict(
        plain=variant("F32"),
        cls=variant("F16", files=pooling("cls"), hidden_act="gelu_new", lost="the activation"),
        mean=variant(files=pooling("mean"), type_vocab_size=1),
        max=variant("F32", num_hidden_layers=1, files=pooling("max"), lost="the pooling"),
    )),
    "bert_rank": Family("BertConfig", "BertForSequenceClassification", gives="score", common=ONE, repack=first_names, variants=dict(
        plain=variant("F32", lost="the linear under the score"),
        classes=variant("F32", num_hidden_layers=1, num_labels=3, lost="the linear under the score"),
    )),
    "roberta": Family("RobertaConfig", "RobertaModel", gives="embedding", common=dict(pad_token_id=1), variants=dict(
        plain=variant("F32"),
    )),
    "xlm_roberta": Family("XLMRobertaConfig", "XLMRobertaModel", gives="embedding", variants=dict(
        cls=variant(files=pooling("cls"), pad_token_id=1, type_vocab_size=1),
        pad0=variant("F16", files=pooling("mean"), lost="that positions begin at 1"),
    )),
    "xlm_roberta_rank": Family("XLMRobertaConfig", "XLMRobertaForSequenceClassification", gives="score", common=dict(ONE, pad_token_id=1, type_vocab_size=1), variants=dict(
        plain=variant(),
    )),
    "distilbert": Family("DistilBertConfig", "DistilBertModel", gives="embedding", common=DISTIL, variants=dict(
        plain=variant(files=pooling("mean")),
    )),
    "distilbert_rank": Family("DistilBertConfig", "DistilBertForSequenceClassification", gives="score", common=dict(DISTIL, **ONE), variants=dict(
        plain=variant(lost="that a ReLU is under the score"),
    )),
    "modernbert": Family("ModernBertConfig", "ModernBertModel", gives="embedding", common=dict(local_attention=8, rope_parameters=ROPES), variants=dict(
        plain=variant(num_hidden_layers=4, files=pooling("cls")),
        mixed=variant(num_hidden_layers=3, layer_types=["sliding_attention", "full_attention", "sliding_attention"], norm_bias=True, attention_bias=True,
                      mlp_bias=True, local_attention=10, files=pooling("mean"), lost="the layers' kinds"),
    )),
    "modernbert_rank": Family("ModernBertConfig", "ModernBertForSequenceClassification", gives="score", common=dict(ONE, local_attention=8), variants=dict(
        plain=variant(num_hidden_layers=3),
        mean=variant(num_hidden_layers=3, classifier_pooling="mean", classifier_bias=True, norm_bias=True, classifier_activation="relu", lost="the pooling"),
    )),
    "nomic_bert": Family("NomicBertConfig", "NomicBertModel", gives="embedding", common=dict(head_dim=None), variants=dict(
        plain=variant(files=pooling("mean")),
    )),
    "qwen3_embedding": Family("Qwen3Config", "Qwen3ForCausalLM", gives="embedding", variants=dict(
        last=variant(files=pooling("last"), tie_word_embeddings=True),
        weighted=variant(num_hidden_layers=1, files=pooling("weightedmean"), tie_word_embeddings=True, lost="the pooling"),
    )),
    "embeddinggemma": Family("Gemma3TextConfig", "Gemma3TextModel", gives="embedding", common=dict(use_bidirectional_attention=True, sliding_window=8,
                                                                                                  query_pre_attn_scalar=12), variants=dict(
        plain=variant(num_hidden_layers=6, files=dense(32, 48, 32)),
        causal=variant(num_hidden_layers=3, layer_types=["sliding_attention", "full_attention", "sliding_attention"], use_bidirectional_attention=False, files=pooling("mean"), lost="that it looks back only"),
        last=variant("F32", num_hidden_layers=1, files=pooling("last")),
    )),
    "qwen3_rank": Family("Qwen3Config", "Qwen3ForSequenceClassification", gives="score", common=ONE, variants=dict(
        plain=variant(num_hidden_layers=2),
    )),
    "gemma2_embedding": Family("Gemma2Config", "Gemma2Model", gives="embedding", common=dict(query_pre_attn_scalar=12, sliding_window=7), variants=dict(
        last=variant(files=pooling("last")),
    )),
    "gemma2_rank": Family("Gemma2Config", "Gemma2ForSequenceClassification", gives="score", common=dict(ONE, query_pre_attn_scalar=12), variants=dict(
        plain=variant(num_hidden_layers=1),
    )),
    "mistral_embedding": Family("MistralConfig", "MistralModel", gives="embedding", common=dict(sliding_window=9), variants=dict(
        last=variant(files=pooling("last"), lost="the window"),
    )),
}
