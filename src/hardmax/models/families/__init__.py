"""Architectures of published models: from settings and named weights to a transformer."""

from .bert import albert as albert
from .bert import bert as bert
from .bert import bert_gguf as bert_gguf
from .bert import distilbert as distilbert
from .bert import roberta as roberta
from .gpt2 import gpt2 as gpt2
from .gpt2 import gpt2_gguf as gpt2_gguf
from .llama import llama as llama
from .llama import llama_gguf as llama_gguf
from .llama import qwen2_gguf as qwen2_gguf
from .parts import Built as Built
