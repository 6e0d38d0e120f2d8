"""A decoder in PyTorch with FSDP2, as torchtitan builds and trains it (`Llama`), and GPT-2's blocks."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Shape:
    """Names of the scenario's `model` (Hugging Face's keys)."""

    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    intermediate_size: int
    vocab_size: int
    gpt2: bool = False  # LayerNorm, biases, GELU, learned positions, tied embedding
    max_positions: int = 1024


SHAPES = {
    "gpt2-124m": Shape(768, 12, 12, 12, 3072, 50304, True),
    "gpt2-1.5b": Shape(1600, 48, 25, 25, 6400, 50304, True),
    "llama-1b": Shape(2048, 16, 32, 8, 8192, 128256),
    "llama-8b-4-layers": Shape(4096, 4, 32, 8, 14336, 128256),
    "llama-70b-2-layers": Shape(8192, 2, 64, 8, 28672, 32000),
}


def rotate(x, angles):
    """RoPE as torchtitan does it: pairs as complex numbers in fp32. x [batch, seq, heads, dim]."""
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * angles[None, :, None, :]).flatten(3).type_as(x)


class Attention(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.heads, self.kv_heads = shape.num_attention_heads, shape.num_key_value_heads
        self.dim = shape.hidden_size // self.heads
        self.gpt2 = shape.gpt2
        if shape.gpt2:
            self.qkv = nn.Linear(shape.hidden_size, 3 * shape.hidden_size)
        else:
            self.wq = nn.Linear(shape.hidden_size, self.heads * self.dim, bias=False)
            self.wk = nn.Linear(shape.hidden_size, self.kv_heads * self.dim, bias=False)
            self.wv = nn.Linear(shape.hidden_size, self.kv_heads * self.dim, bias=False)
        self.wo = nn.Linear(shape.hidden_size, shape.hidden_size, bias=shape.gpt2)

    def forward(self, x, angles):
        batch, seq, hidden = x.shape
        if self.gpt2:
            q, k, v = self.qkv(x).split(hidden, dim=2)
            q, k, v = (t.view(batch, seq, self.heads, self.dim) for t in (q, k, v))
        else:
            q = self.wq(x).view(batch, seq, self.heads, self.dim)
            k = self.wk(x).view(batch, seq, self.kv_heads, self.dim)
            v = self.wv(x).view(batch, seq, self.kv_heads, self.dim)
            q, k = rotate(q, angles), rotate(k, angles)
            repeats = self.heads // self.kv_heads
            if repeats > 1:  # torchtitan's repeat_kv
                k, v = (t[:, :, :, None, :].expand(batch, seq, self.kv_heads, repeats, self.dim)
                        .reshape(batch, seq, self.heads, self.dim) for t in (k, v))
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).contiguous().view(batch, seq, -1))


class FeedForward(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.gpt2 = shape.gpt2
        self.w1 = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=shape.gpt2)
        self.w2 = nn.Linear(shape.intermediate_size, shape.hidden_size, bias=shape.gpt2)
        if not shape.gpt2:
            self.w3 = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)

    def forward(self, x):
        if self.gpt2:
            return self.w2(F.gelu(self.w1(x), approximate="tanh"))
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, shape):
        super().__init__()
        norm = nn.LayerNorm if shape.gpt2 else nn.RMSNorm
        self.attention_norm, self.ffn_norm = (norm(shape.hidden_size, eps=1e-5) for _ in range(2))
        self.attention, self.feed_forward = Attention(shape), FeedForward(shape)

    def forward(self, x, angles):
        h = x + self.attention(self.attention_norm(x), angles)
        return h + self.feed_forward(self.ffn_norm(h))


class Decoder(nn.Module):
    def __init__(self, shape, seq_len):
        super().__init__()
        self.shape = shape
        self.tokens = nn.Embedding(shape.vocab_size, shape.hidden_size)
        if shape.gpt2:
            self.positions = nn.Embedding(shape.max_positions, shape.hidden_size)
        self.layers = nn.ModuleList(Block(shape) for _ in range(shape.num_hidden_layers))
        norm = nn.LayerNorm if shape.gpt2 else nn.RMSNorm
        self.norm = norm(shape.hidden_size, eps=1e-5)
        self.output = nn.Linear(shape.hidden_size, shape.vocab_size, bias=False)
        if shape.gpt2:
            self.output.weight = self.tokens.weight
        dim = shape.hidden_size // shape.num_attention_heads
        frequencies = 1.0 / 500000.0 ** (torch.arange(0, dim, 2, device="cuda").float() / dim)
        angles = torch.outer(torch.arange(seq_len, device="cuda").float(), frequencies)
        self.angles = torch.polar(torch.ones_like(angles), angles)

    def forward(self, tokens):
        h = self.tokens(tokens)
        if self.shape.gpt2:
            h = h + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for layer in self.layers:
            h = layer(h, self.angles)
        return self.output(self.norm(h))
