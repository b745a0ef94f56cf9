"""The tutorial's equations of a decoder, word by word and sentence by sentence: slow, and easy to follow."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from dragoman.data.vocabulary import START
from dragoman.models.translator import Translator
from dragoman.nn.cells import CELLS, Cell
from zoo import pairs_of


def naive_scores(kind: str, weights: dict[str, Tensor], H: Tensor, h: Tensor) -> Tensor:
    """attn_score(h^(f)_j, h^(e)_t), one j at a time.  # (longest,)"""
    prefix = "decoder.attention.score."
    named = {name.removeprefix(prefix): part for name, part in weights.items()}
    match kind:
        case "dot":
            scores = [h_j @ h for h_j in H]
        case "bilinear":
            scores = [h_j @ named["bilinear.weight"] @ h for h_j in H]
        case _:
            W_a1 = torch.cat([named["query_input.weight"], named["key_input.weight"]], dim=1)
            scores = [named["output"] @ torch.tanh(W_a1 @ torch.cat([h, h_j])) for h_j in H]
    return torch.stack(scores)


def naive_priors(model: Translator, H: Tensor, h: Tensor, alphas: list[Tensor]) -> Tensor:
    """What priors add to the scores, one place at a time, given all attention before.  # (longest,)"""
    settings, F, t = model.settings, len(H), len(alphas)
    prefix = "decoder.attention.priors."
    priors = {name.removeprefix(prefix): part for name, part in model.state_dict().items()}
    bias = torch.zeros(F, dtype=H.dtype)
    for j in range(F):
        coverage = sum((alpha[j] for alpha in alphas), torch.zeros((), dtype=H.dtype))
        if settings.position:
            E = F * priors["position.log_ratio"].exp()
            off = ((j + 0.5) / F - (t + 0.5) / E).abs()
            bias[j] -= priors["position.log_strength"].exp() * off
        if settings.markov:
            jumps = priors["markov.jumps"].softmax(dim=0)
            last = {-1: 1.0} if t == 0 else dict(enumerate(alphas[-1].tolist()))
            arrived = sum(p * float(jumps[j - k + 3]) for k, p in last.items() if abs(j - k) <= 3)
            bias[j] += priors["markov.log_strength"].exp() * math.log(arrived + 1e-3)
        if settings.fertility:
            phi = 3 * torch.sigmoid(priors["fertility.u"] @ H[j] + priors["fertility.b"])
            bias[j] -= priors["fertility.log_strength"].exp() * coverage / phi
        if settings.coverage:
            U, u, v = (priors[f"coverage.{name}"] for name in ("vector_input.weight", "u", "v"))
            bias[j] += v @ torch.tanh(U @ H[j] + u * coverage)
        if settings.local:
            p_t = F * torch.sigmoid(priors["local.v"] @ torch.tanh(priors["local.state_input.weight"] @ h))
            bias[j] -= (j + 0.5 - p_t) ** 2 / (2 * (settings.local / 2) ** 2)
    return bias


def naive_bias(model: Translator, sentence: int, alpha: Tensor) -> Tensor | float:
    """log(p_lex + floor), p_lex(e) = sum_j alpha_j L(e | f_j); 0 without a lexicon.  # (|V|,)"""
    if model.lexicon is None:
        return 0.0
    starts, words, probs = model.lexicon.table
    p_lex = torch.zeros(len(model.vocab), dtype=alpha.dtype)
    for weight, word in zip(alpha.tolist(), pairs_of(model).source[sentence].tolist(), strict=False):
        for entry in range(int(starts[word]), int(starts[word + 1])):
            p_lex[words[entry]] += weight * probs[entry]
    assert len(probs) and (p_lex > 0).sum() < len(p_lex) - 2
    return (p_lex + model.settings.lexicon_floor).log()


def naive_softmax(model: Translator, h: Tensor, c: Tensor | None, bias: Tensor | float = 0.0) -> Tensor:
    """log softmax(W_hs [h_t; c_t] + b_s), `<s>` impossible.  # (|V|,)"""
    weights, x = dict(model.state_dict()), h if c is None else torch.cat([h, c])
    if model.settings.readout:
        x = torch.tanh(weights["readout.weight"] @ x + weights["readout.bias"])
    if "projection.weight" in weights:
        x = weights["projection.weight"] @ x + weights["projection.bias"]
    within = "output." if model.classes is None else "output.within."
    W = weights["embedding.weight"] if model.settings.tied else weights[f"{within}weight.weight"]
    s = W @ x + weights[f"{within}bias"] + bias
    s[START] = -math.inf
    if model.classes is None:
        return s.log_softmax(dim=0)
    class_of, by_class = model.classes.class_of, weights["output.classes.weight"] @ x + weights["output.classes.bias"]
    result = torch.empty_like(s)
    words_of = [(class_of == number).nonzero()[:, 0] for number in range(len(model.classes))]
    possible = torch.tensor([bool((s[words] > -math.inf).any()) for words in words_of])
    by_class = by_class.masked_fill(~possible, -math.inf).log_softmax(dim=0)
    for number, words in enumerate(words_of):
        result[words] = by_class[number] + (s[words].log_softmax(dim=0) if possible[number] else -math.inf)
    return result


def naive_cell_step(cell: Cell, p: Tensor, state: tuple[Tensor, ...], W_h: Tensor) -> tuple[Tensor, ...]:
    """One step of a cell for single vectors, with plain products."""
    parts = W_h.split([gates * W_h.shape[1] for gates in cell.products])
    products = [lambda p, x, W=W: p + x @ W.t() for W in parts]
    return tuple(part[0] for part in cell.step(p[None], tuple(part[None] for part in state), products))


def naive_steps(model: Translator, encoded: Any, sentence: int, target: list[int]) -> list[Tensor]:
    """log p_t of every word of one translation: one vector at a time, [embed(e_{t-1}); c_{t-1}] as it is written."""
    weights, settings = dict(model.state_dict()), model.settings
    cell, mask = CELLS[settings.cell], encoded.mask[sentence]
    H = encoded.vectors[sentence][mask]
    states = [naive_bridge(model, encoded, sentence, layer) for layer in range(settings.layers)]
    c, log_probs = torch.zeros(H.shape[1], dtype=H.dtype), []  # c_0 = 0
    alphas: list[Tensor] = []
    for word in [START, *target]:
        x = weights["embedding.weight"][word]
        for number in range(settings.layers):
            names = ("input.weight", "recurrent.weight", "input.bias")
            W_x, W_h, b = (weights[f"decoder.layers.{number}.{name}"] for name in names)
            if number == 0 and settings.attention != "none":
                W_x, x = torch.cat([W_x, weights["decoder.context_input.weight"]], dim=1), torch.cat([x, c])
            after = naive_cell_step(cell, W_x @ x + b, states[number], W_h)
            states[number] = after
            x = states[number][0]
        if settings.attention == "none":
            log_probs.append(naive_softmax(model, x, None))
            continue
        scores = naive_scores(settings.attention, weights, H, x) + naive_priors(model, H, x, alphas)
        alpha = scores.softmax(dim=0)
        alphas.append(alpha)
        c = H[int(alpha.argmax())] if settings.hard else H.T @ alpha
        log_probs.append(naive_softmax(model, x, c, naive_bias(model, sentence, alpha)))
    return log_probs


def naive_bridge(model: Translator, encoded: Any, sentence: int, layer: int) -> tuple[Tensor, ...]:
    """h_0 = h^(f)_{|F|}, or tanh(W h + b) of it; the last layers belong together."""
    from_last = min(model.settings.layers - 1 - layer, len(encoded.final_states) - 1)
    weights, end = dict(model.state_dict()), encoded.final_states[::-1][from_last]
    initial = []
    for place, name in enumerate(CELLS[model.settings.cell].state):
        part = end[min(place, len(end) - 1)][sentence]
        if model.settings.bridge == "tanh":
            prefix = f"bridge.layers.{layer}.{name}"
            part = torch.tanh(weights[f"{prefix}.weight"] @ part + weights[f"{prefix}.bias"])
        initial.append(part)
    return tuple(initial)
