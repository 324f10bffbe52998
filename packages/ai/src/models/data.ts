// Written by scripts/release/catalog.mjs; do not edit.

export const DATE: string = "2026-11-02";

export const SOURCES: readonly string[] = [
  "@earendil-works/pi-ai@1.5.0 (MIT)",
  "@pydantic/genai-prices@0.1.8 (MIT)",
];

/** `decode` in catalog.ts says how to read it. */
export const DATA: string = `@anthropic|anthropic-messages
claude-fable-5-1|Claude Fable 5.1|1000k|128k|tir/lmhxM/abcdefghijkl|10,50,0.25,12.5
claude-fable-5|Claude Fable 5|1000k|128k|tir/lmhxM/abcdefghij|10,50,1,12.5
claude-haiku-4-5-20251001|Claude Haiku 4.5|200k|64k|tir//abcd|1,5,0.1,1.25
claude-haiku-4-5|Claude Haiku 4.5|200k|64k|tir//abcd|1,5,0.1,1.25
claude-haiku-5-5|Claude Haiku 5.5|1000k|128k|tir/nlmhxM/abcdefghijklm|0.1,0.5,0.01,0.125|100k:0.5,2.5,0.05,0.625
claude-opus-4-5-20251101|Claude Opus 4.5|200k|64k|tir//abcd|5,25,0.5,6.25
claude-opus-4-5|Claude Opus 4.5|200k|64k|tir//abcd|5,25,0.5,6.25
claude-opus-4-6|Claude Opus 4.6|1000k|128k|tir/nlmhM/abcdef|5,25,0.5,6.25
claude-opus-4-7|Claude Opus 4.7|1000k|128k|tir/nlmhxM/abcdefghi|5,25,0.5,6.25
claude-opus-4-8|Claude Opus 4.8|1000k|128k|tir/nlmhxM/abcdefghi|5,25,0.5,6.25
claude-opus-5-5|Claude Opus 5.5|1000k|128k|tir/lmhxM/abcdefghijkl|4,20,0.2,5
claude-opus-5|Claude Opus 5|1000k|128k|tir/nlmhxM/abcdefghijm|5,25,0.5,6.25
claude-sonnet-4-5-20250929|Claude Sonnet 4.5|200k|64k|tir//abcd|3,15,0.3,3.75
claude-sonnet-4-5|Claude Sonnet 4.5|200k|64k|tir//abcd|3,15,0.3,3.75
claude-sonnet-4-6|Claude Sonnet 4.6|1000k|128k|tir/nlmhM/abcdef|3,15,0.3,3.75
claude-sonnet-5-5|Claude Sonnet 5.5|1000k|128k|tir/lmhxM/abcdefghijkln|2,10,0.1,2.5
claude-sonnet-5|Claude Sonnet 5|1000k|128k|tir/nlmhxM/abcdefghijm|2,10,0.2,2.5
@openai|openai-responses
chat-latest|Chat Latest|400k|128k|tir|5,30,0.5
gpt-4-turbo|GPT-4 Turbo|128k|4K|ti|10,30
gpt-4.1-mini|GPT-4.1 mini|1047576|32K|ti|0.4,1.6,0.1
gpt-4.1-nano|GPT-4.1 nano|1047576|32K|ti|0.1,0.4,0.025
gpt-4.1|GPT-4.1|1047576|32K|ti|2,8,0.5
gpt-4o-2024-05-13|GPT-4o (2024-05-13)|128k|4K|ti|5,15
gpt-4o-2024-08-06|GPT-4o (2024-08-06)|128k|16K|ti|2.5,10,1.25
gpt-4o-2024-11-20|GPT-4o (2024-11-20)|128k|16K|ti|2.5,10,1.25
gpt-4o-mini|GPT-4o mini|128k|16K|ti|0.15,0.6,0.075
gpt-4o|GPT-4o|128k|16K|ti|2.5,10,1.25
gpt-4|GPT-4|8K|8K|t|30,60
gpt-5-chat-latest|GPT-5 Chat Latest|128k|16K|ti|1.25,10,0.125
gpt-5-mini|GPT-5 Mini|400k|128k|tir/ulmh|0.25,2,0.025
gpt-5-nano|GPT-5 Nano|400k|128k|tir/ulmh|0.05,0.4,0.005
gpt-5-pro|GPT-5 Pro|400k|128k|tir/h|15,120
gpt-5.1|GPT-5.1|400k|128k|tir/nlmh|1.25,10,0.125
gpt-5.2-pro|GPT-5.2 Pro|400k|128k|tir/mhx|21,168
gpt-5.2|GPT-5.2|400k|128k|tir/nlmhx|1.75,14,0.175
gpt-5.3-codex-spark|GPT-5.3 Codex Spark|128k|32k|tir/lmhx|1.75,14,0.175
gpt-5.3-codex|GPT-5.3 Codex|400k|128k|tir/nlmhx|1.75,14,0.175
gpt-5.4-mini|GPT-5.4 mini|400k|128k|tir/nlmhx|0.75,4.5,0.075
gpt-5.4-nano|GPT-5.4 nano|400k|128k|tir/nlmhx|0.2,1.25,0.02
gpt-5.4-pro|GPT-5.4 Pro|1050k|128k|tir/mhx|30,180|272k:60,270
gpt-5.4|GPT-5.4|1050k|128k|tir/nlmhx|2.5,15,0.25|272k:5,22.5,0.5
gpt-5.5-pro|GPT-5.5 Pro|1050k|128k|tir/mhx|30,180|272k:60,270
gpt-5.5|GPT-5.5|1050k|128k|tir/nlmhx|5,30,0.5|272k:10,45,1
gpt-5.6-cyber|GPT-5.6 Cyber|400k|128k|tir/lmhxM|12.5,75,1.25,15.625
gpt-5.6-luna|GPT-5.6 Luna|1050k|128k|tir/nlmhxM|0.2,1.2,0.02,0.25|272k:0.4,1.8,0.04,0.5
gpt-5.6-sol|GPT-5.6 Sol|1050k|128k|tir/nlmhxM|4,20,0.4,5|272k:8,30,0.8,10
gpt-5.6-terra|GPT-5.6 Terra|1050k|128k|tir/nlmhxM|2,12,0.2,2.5|272k:4,18,0.4,5
gpt-5|GPT-5|400k|128k|tir/ulmh|1.25,10,0.125
gpt-6-astra|GPT-6 Astra|1050k|128k|tir/lmhxM|10,50,1,12.5|272k:20,75,2,25
gpt-6-luna|GPT-6 Luna|1050k|128k|tir/nlmhxM|0.1,0.5,0.01,0.125|272k:0.2,0.75,0.02,0.25
gpt-6-sol|GPT-6 Sol|1050k|128k|tir/nlmhxM|2,10,0.2,2.5|272k:4,15,0.4,5
gpt-6.1-sol|GPT-6.1 Sol|1050k|128k|tir/lmhxM|2,10,0.1,2.5|272k:4,15,0.2,5
gpt-6.1-terra|GPT-6.1 Terra|1050k|128k|tir/nlmhxM|1,5,0.05,1.25|272k:2,7.5,0.1,2.5
gpt-daybreak-blue-latest|Daybreak Blue|1050k|128k|tir/nlmhxM|4,20,0.4,5|272k:8,30,0.8,10
gpt-daybreak-red-latest|Daybreak Red|400k|128k|tir/nlmhxM|12.5,75,1.25,15.625
o1-pro||200k|100k|tir/lmh|150,600
o1||200k|100k|tir/lmh|15,60,7.5
o3-mini||200k|100k|tr/lmh|1.1,4.4,0.55
o3-pro||200k|100k|tir/lmh|20,80
o3||200k|100k|tir/lmh|2,8,0.5
o4-mini||200k|100k|tir/lmh|1.1,4.4,0.275
@google|google-generative-ai
gemini-2.5-computer-use-preview-10-2025|Gemini 2.5 Computer Use Preview 10-2025|128k|64k|tir|1.25,10|200k:2.5,15
gemini-2.5-flash-lite|Gemini 2.5 Flash-Lite|1024K|64K|tir|0.1,0.4,0.01
gemini-2.5-flash|Gemini 2.5 Flash|1024K|64K|tir|0.3,2.5,0.03
gemini-2.5-pro|Gemini 2.5 Pro|1024K|64K|tir|1.25,10,0.125|200k:2.5,15,0.25
gemini-3-flash-preview|Gemini 3 Flash Preview|1024K|64K|tir/ulmh|0.5,3,0.05
gemini-3.1-flash-lite-preview|Gemini 3.1 Flash Lite Preview|1024K|64K|tir/ulmh|0.25,1.5,0.025
gemini-3.1-flash-lite|Gemini 3.1 Flash Lite|1024K|64K|tir/ulmh|0.25,1.5,0.025
gemini-3.1-pro-preview-customtools|Gemini 3.1 Pro Preview Custom Tools|1024K|64K|tir/lmh|2,12,0.2|200k:4,18,0.4
gemini-3.1-pro-preview|Gemini 3.1 Pro Preview|1024K|64K|tir/lmh|2,12,0.2|200k:4,18,0.4
gemini-3.5-flash-lite|Gemini 3.5 Flash Lite|1024K|64K|tir/ulmh|0.3,2.5,0.03
gemini-3.5-flash|Gemini 3.5 Flash|1024K|64K|tir/ulmh|1.5,9,0.15
gemini-3.6-flash|Gemini 3.6 Flash|1024K|64K|tir/ulmh|0.75,3.75,0.075
gemini-3.7-flash|Gemini 3.7 Flash|1024K|64K|tir/lmh|0.75,3.75,0.075
gemini-3.8-flash|Gemini 3.8 Flash|1024K|64K|tir/lmh|0.75,3.75,0.075
gemini-4-argon|Gemini 4 Argon|1024K|32K|tir/lmh|2,10,0.1
gemini-flash-latest|Gemini Flash Latest|1024K|64K|tir/ulmh|1.5,9,0.15
gemini-flash-lite-latest|Gemini Flash-Lite Latest|1024K|64K|tir/ulmh|0.25,1.5,0.025
gemini-pro-latest|Gemini Pro Latest|1024K|64K|tir/lmh|2,12,0.2|200k:4,18,0.4
gemini-robotics-er-2-preview|Gemini Robotics-ER 2 Preview|128K|64K|tir/ulmh|1,5,0.1
gemma-4-26b-a4b-it|Gemma 4 26B A4B IT|256K|32K|tir/uh
gemma-4-31b-it|Gemma 4 31B IT|256K|32K|tir/uh
@xai|openai-completions
grok-4.3|Grok 4.3|1000k|30k|tir/nlmhx|1.25,2.5,0.2|200k:2.5,5,0.4
grok-4.5|Grok 4.5|500k|500k|tir/lmhx|2,6,0.3|200k:4,12,0.6
grok-4.6|Grok 4.6|500k|500k|tir/lmhx|2,6,0.5|200k:4,12,1
grok-4.7|Grok 4.7|500k|500k|tir/lmhx|2,6,0.5|200k:4,12,1
@deepseek|openai-completions
deepseek-flash|DeepSeek V4.1 Flash|1000k|384k|tir/nlhM|0.3,1.2,0.006
deepseek-v4-pro|DeepSeek V4 Pro|1000k|384k|tr/nhM|1.32,3.96,0.044
@mistral|openai-completions
codestral-2508|Codestral 25.08|256k|8K|t|0.3,0.9,0.03
codestral-latest|Codestral|256k|4K|t|0.3,0.9,0.03
deepseek-v4-1-flash-1017|DeepSeek V4.1 Flash 1017|1024K|128k|tr/nlhM|0.3,1.2,0.007
devstral-2512|Devstral 2|256K|256K|t|0.4,2,0.04
devstral-latest|Devstral 2|256K|256K|t|0.4,2,0.04
devstral-medium-latest|Devstral 2|256K|256K|t|0.4,2,0.04
glm-5-2|GLM-5.2|1024K|128K|tr/nhM|1.4,4.4,0.14
labs-devstral-small-2512|Devstral Small 2|256k|256k|ti
labs-leanstral-1-5-1|Leanstral 1.5|256K|128k|tir/nh
magistral-medium-latest|Magistral Medium|256K|16K|tir/nh|2,5,0.2
ministral-14b-2512|Ministral 3 14B|256K|256K|ti|0.2,0.2,0.02
ministral-3b-2512|Ministral 3 3B|128K|128K|ti|0.1,0.1,0.01
ministral-3b-latest|Ministral 3B|128K|128k|ti|0.1,0.1,0.01
ministral-8b-2512|Ministral 3 8B|256K|256K|ti|0.15,0.15,0.015
ministral-8b-latest|Ministral 8B|256K|128k|ti|0.15,0.15,0.015
mistral-large-2512|Mistral Large 3|256K|256K|ti|0.5,1.5,0.05
mistral-large-4-0-8|Mistral Large 4.0.8|1024K|256K|tir/lmh|0.7,2.1,0.07
mistral-large-4|Mistral Large 4|1024K|256K|tir/lmh|0.7,2.1,0.07
mistral-large-latest|Mistral Large|256K|256K|ti|0.5,1.5,0.05
mistral-medium-2505|Mistral Medium 3|128K|128K|ti|0.4,2,0.04
mistral-medium-2508|Mistral Medium 3.1|256K|256K|ti|0.4,2,0.04
mistral-medium-2604|Mistral Medium 3.5|256K|256K|tir/nh|1.5,7.5,0.15
mistral-medium-3.5|Mistral Medium 3.5|256K|256K|tir/nh|1.5,7.5
mistral-medium-latest|Mistral Medium|256K|256K|tir/nh|1.5,7.5,0.15
mistral-small-2506|Mistral Small 3.2|128k|16K|ti|0.1,0.3,0.01
mistral-small-2603|Mistral Small 4|256K|256k|tir/nh|0.15,0.6,0.015
mistral-small-latest|Mistral Small|256K|256k|tir/nh|0.15,0.6,0.015
open-mistral-nemo|Open Mistral Nemo|128k|128k|t|0.15,0.15,0.015
pixtral-12b|Pixtral 12B|128k|128k|ti|0.15,0.15,0.015
voxtral-small-2507|Voxtral Small|32K|32k|t|0.1,0.4,0.01
voxtral-small-latest|Voxtral Small|32K|32k|t|0.1,0.4,0.01
zai-glm-5-2|GLM-5.2|1024K|128K|tr/nhM|1.4,4.4,0.14
zai-glm-5-3-flash|GLM-5.3-Flash|1024K|128K|tir/lhM|0.15,0.5,0.03
zai-glm-5-3|GLM-5.3|1024K|128K|tr/lhM|1.4,4.4,0.14
@moonshot|openai-completions
kimi-k2.6|Kimi K2.6|256K|256K|tir/nh()|0.95,4,0.16
kimi-k2.7-code-highspeed|Kimi K2.7 Code HighSpeed|256K|256K|tir/h()|1.9,8,0.38
kimi-k2.7-code|Kimi K2.7 Code|256K|256K|tir/h()|0.95,4,0.19
kimi-k3.1-pro-highspeed|Kimi K3.1 Pro Highspeed|1024K|1024K|tir/lhM|4,20,0.2
kimi-k3.1-pro|Kimi K3.1 Pro|1024K|1024K|tir/lhM|2,10,0.2
kimi-k3|Kimi K3|1024K|1024K|tir/lhM|3,15,0.3
@zai|openai-completions
glm-4.7|GLM-4.7|200K|128K|tr/nh()|0.6,2.2,0.11
glm-5-turbo|GLM-5-Turbo|200k|128K|tr/nh()|1.2,4,0.24
glm-5.2-highspeed|GLM-5.2 Highspeed|1000k|128K|tr/nhM
glm-5.2|GLM-5.2|1000k|128K|tr/nhM|1.4,4.4,0.26
glm-5.3-flash|GLM-5.3-Flash|1000k|128K|tir/lhM|0.15,0.5,0.03
glm-5.3-highspeed|GLM-5.3 Highspeed|1000k|128K|tr/lhM
glm-5.3|GLM-5.3|1000k|128K|tr/lhM|1.4,4.4,0.26
@groq|openai-completions
llama-3.1-8b-instant|Llama 3.1 8B|128K|128K|t|0.05,0.08
llama-3.3-70b-versatile|Llama 3.3 70B|128K|32K|t|0.59,0.79
openai/gpt-oss-120b|GPT OSS 120B|128K|64K|tr/lmh|0.15,0.6,0.075
openai/gpt-oss-20b|GPT OSS 20B|128K|64K|tr/lmh|0.075,0.3,0.0375
qwen/qwen3.6-27b|Qwen3.6 27B|128K|16K|tir/nh(default)|0.6,3,0.3
qwen/qwen3.8-27b|Qwen3.8 27B|128K|16K|tir/nlmh|0.8,4
@cerebras|openai-completions
gpt-oss-120b|GPT OSS 120B|128K|40K|tr/lmh|0.35,0.75,0.35
qwen-3.8-27b|Qwen3.8 27B|128K|40K|tir/nlmh|0.99,1.49,0.99
@together|openai-completions
MiniMaxAI/MiniMax-M3||512K|512K|tir/nh()|0.3,1.2,0.06
Qwen/Qwen3.5-9B|Qwen3.5 9B|256K|64K|tir/nh()|0.17,0.25
Qwen/Qwen3.6-Plus|Qwen3.6 Plus|1000k|64K|tr/nh()|0.5,3
Qwen/Qwen3.7-Max|Qwen3.7 Max|1000k|128K|tr/nh()|2.5,7.5,0.5
deepseek-ai/DeepSeek-V4-Pro-0813|DeepSeek V4 Pro 0813|1024K|384k|tr/nh|1.32,3.96,0.13
deepseek-ai/DeepSeek-V4.1-Flash|DeepSeek V4.1 Flash|1024K|384k|tir/nh()|0.3,1.2,0.006
meta-models/Muse-Spark-Open-816B-A42B|Muse Spark Open|1024K|128K|tir/nh()|1.25,4.25,0.15
moonshotai/Kimi-K3|Kimi K3|1024K|128K|tir/nh()|3,15,0.3
nvidia/NVIDIA-Nemotron-3.5-Super-VL|Nemotron 3.5 Super VL 120B A12B|256K|256K|tir/nh()|0.15,0.5,0.02
openai/gpt-oss-120b|GPT OSS 120B|128K|128K|tr/lmh|0.15,0.6
reflection/Beam-1.0-501B-A23B|Beam 1.0 501B A23B|1024K|128K|tr/nh()|0.4,1.2,0.04
thinkingmachines/Inkling||512K|128K|tir/nh()|1,4.05,0.17
zai-org/GLM-5.2||1048575|164k|tr/nh()|1.4,4.4,0.26
zai-org/GLM-5.3-Flash||1048575|400k|tir/nh()|0.15,0.5,0.03
zai-org/GLM-5.3||1048575|256K|tr/nh()|1.4,4.4,0.26
@fireworks|openai-completions
accounts/fireworks/models/deepseek-v4p1-flash-1017|DeepSeek V4.1 Flash 1017|1000k|384k|tir/nlhM|0.3,1.2,0.006
accounts/fireworks/models/deepseek-v4p1-flash|DeepSeek V4.1 Flash|1000k|384k|tir/nlhM|0.3,1.2,0.006
accounts/fireworks/models/ember-1|Ember-1|1024K|128K|tir/nlmhM|3,15,0.3
accounts/fireworks/models/glm-5p3-flash|GLM 5.3 Flash|1048573|128K|tir/lhM|0.15,0.5,0.03
accounts/fireworks/models/glm-5p3|GLM 5.3|1048573|256K|tr/lhM|1.4,4.4,0.26
accounts/fireworks/models/gpt-oss-120b|GPT OSS 120B|128K|32K|tr/lmh|0.15,0.6,0.015
accounts/fireworks/models/inkling|Inkling|1024K|1024K|tir|1,4.05,0.17
accounts/fireworks/models/kimi-k3|Kimi K3|1024K|128K|tir/lhM|3,15,0.3
accounts/fireworks/models/minimax-m3p1-flash|MiniMax-M3.1-Flash|1000k|512k|tir/lmhxM|0.15,0.6,0.015
accounts/fireworks/models/minimax-m3|MiniMax-M3|512k|512k|tr/lmh|0.3,1.2,0.06
accounts/fireworks/models/muse-spark-open|Muse Spark Open|1024K|128K|tir/lmhx|1.25,4.25,0.15
accounts/fireworks/models/nemotron-3-ultra-nvfp4|Nemotron 3 Ultra 550B A55B|256K|128k|tr|0.6,2.4,0.12
accounts/fireworks/models/nemotron-lightning-3p5-30b-a3b|Nemotron 3.5 Lightning 30B A3B|256K|256K|tr|0.05,0.2,0.01
accounts/fireworks/models/qwen3p8-2p4t-a95b|Qwen3.8 2.4T A95B|256K|128K|tr/nlmx|2,6,0.25
accounts/fireworks/models/qwen3p8-max|Qwen3.8 Max|256K|128K|tir/nlmx|2,6,0.25
accounts/fireworks/routers/deepseek-flash-latest|DeepSeek Flash Latest|1000k|384k|tir/nlhM|0.3,1.2,0.006
accounts/fireworks/routers/deepseek-v4p1-flash-1017-spot|DeepSeek V4.1 Flash 1017 Spot|1000k|384k|tir/nlhM|0.21,0.84,0.0042
accounts/fireworks/routers/deepseek-v4p1-flash-spot|DeepSeek V4.1 Flash Spot|1000k|384k|tir/nlhM|0.21,0.84,0.0042
accounts/fireworks/routers/glm-5p3-fast|GLM 5.3 Fast|1048572|256K|tr/lhM|2.1,6.6,0.39
accounts/fireworks/routers/glm-5p3-spot|GLM 5.3 Spot|1048573|256K|tr/lhM|0.98,3.08,0.182
accounts/fireworks/routers/glm-fast-latest|GLM 5.3 Fast (Latest)|1048572|256K|tr/lhM|2.1,6.6,0.39
accounts/fireworks/routers/glm-flash-latest|GLM Flash Latest (GLM 5.3 Flash)|1048573|128K|tir/lhM|0.15,0.5,0.03
accounts/fireworks/routers/glm-latest|GLM Latest|1048573|256K|tr/lhM|1.4,4.4,0.26
accounts/fireworks/routers/kimi-fast-latest|Kimi Fast Latest|1024K|128K|tir/nlmhM|4.5,22.5,0.45
accounts/fireworks/routers/kimi-k3-fast|Kimi K3 Fast|1024K|128K|tir/lhM|4.5,22.5,0.45
accounts/fireworks/routers/kimi-k3-spot|Kimi K3 Spot|1024K|128K|tir/lhM|2.1,10.5,0.21
accounts/fireworks/routers/kimi-latest|Kimi Latest|1024K|128K|tir/nlmhM|3,15,0.3
accounts/fireworks/routers/minimax-latest|MiniMax Latest|512k|512k|tr/lmh|0.3,1.2,0.06
accounts/fireworks/routers/qwen-max-latest|Qwen Max Latest (Qwen3.8 Max)|256K|128K|tir/nlmx|2,6,0.25
@huggingface|openai-completions
MiniMaxAI/MiniMax-M1-80k|MiniMax M1 80K|1000k|80k|tr|0.55,2.2
MiniMaxAI/MiniMax-M2.1||200K|128K|tr|0.3,1.2
MiniMaxAI/MiniMax-M2.5||200K|128K|tr|0.3,1.2,0.03
MiniMaxAI/MiniMax-M2.7||200K|128K|tr|0.3,1.2,0.06
MiniMaxAI/MiniMax-M2||200K|128K|tr|0.3,1.2
MiniMaxAI/MiniMax-M3.1-Flash||1000k|512k|tir/lmhxM|0.15,0.6
MiniMaxAI/MiniMax-M3||512K|512k|tir|0.3,1.2
Qwen/Qwen2.5-Coder-32B-Instruct||128K|8K|t|0.06,0.2
Qwen/Qwen3-235B-A22B-Instruct-2507|Qwen3 235B-A22B Instruct 2507|256K|16K|t|0.855,2.565
Qwen/Qwen3-235B-A22B-Thinking-2507||256K|80K|tr|0.3,3
Qwen/Qwen3-235B-A22B|Qwen3 235B-A22B|40K|16K|tr|0.2,0.8
Qwen/Qwen3-30B-A3B|Qwen3 30B A3B|40K|16K|tr|0.12,0.5
Qwen/Qwen3-32B|Qwen3 32B|128K|16K|tr|0.29,0.59
Qwen/Qwen3-8B|Qwen3 8B|40K|32K|tr/nlmh|0.07,0.18
Qwen/Qwen3-Coder-30B-A3B-Instruct|Qwen3-Coder 30B-A3B Instruct|256K|64K|t|0.07,0.26
Qwen/Qwen3-Coder-480B-A35B-Instruct||256K|64K|t|2,2
Qwen/Qwen3-Coder-Next||256K|64K|t|0.2,1.5
Qwen/Qwen3-Next-80B-A3B-Instruct||256K|32K|t|0.25,1
Qwen/Qwen3-VL-235B-A22B-Instruct|Qwen3 VL 235B A22B Instruct|128K|32K|ti|0.3,1.5
Qwen/Qwen3-VL-235B-A22B-Thinking|Qwen3 VL 235B A22B Thinking|128K|32K|tir/lmh|0.98,3.95
Qwen/Qwen3-VL-30B-A3B-Instruct|Qwen3 VL 30B A3B Instruct|128K|32K|ti|0.2,0.7
Qwen/Qwen3.5-122B-A10B|Qwen3.5 122B-A10B|256K|64K|tir|0.4,3.2
Qwen/Qwen3.5-27B|Qwen3.5 27B|256K|64K|tir|0.3,2.4
Qwen/Qwen3.5-35B-A3B|Qwen3.5 35B-A3B|256K|64K|tir|0.25,2
Qwen/Qwen3.5-397B-A17B||256K|32K|tir/nlmh|0.6,3.6
Qwen/Qwen3.5-9B|Qwen3.5 9B|256K|64K|tir|0.17,0.25
Qwen/Qwen3.6-27B|Qwen3.6 27B|256K|64K|tir|0.47,3.19
Qwen/Qwen3.6-35B-A3B|Qwen3.6 35B-A3B|256K|64K|tir|0.15,0.95
Qwen/Qwen3.8-2.4T-A95B|Qwen3.8 2.4T A95B|256K|128K|tr/lmx|2.5,6.25
Qwen/Qwen3.8-27B|Qwen3.8 27B|256K|32K|tir/lmx|0.4,3
XiaomiMiMo/MiMo-V2.5-Pro||1024K|128K|tr/nlmhx|1,3
XiaomiMiMo/MiMo-V2.5||256K|128K|tr/nlmhx|0.4,2
deepseek-ai/DeepSeek-R1-0528||160K|32K|tr|3,5
deepseek-ai/DeepSeek-R1||64k|32K|tr|0.7,2.5
deepseek-ai/DeepSeek-V3-0324|DeepSeek V3 0324|160K|160K|t|0.27,1.12
deepseek-ai/DeepSeek-V3.1||128K|8K|tr|0.27,1
deepseek-ai/DeepSeek-V3.2||160K|64K|tr|0.28,0.4
deepseek-ai/DeepSeek-V3||64k|8K|t|0.4,1.3
deepseek-ai/DeepSeek-V4-Flash-0731|DeepSeek V4 Flash 0731|1024K|384k|tr/hM|0.14,0.28
deepseek-ai/DeepSeek-V4-Flash-Vision-Exp|DeepSeek V4 Flash Vision Exp|1024K|384k|tir/lhM|0.44,1.32
deepseek-ai/DeepSeek-V4-Flash|DeepSeek V4 Flash|1024K|384k|tr|0.14,0.28
deepseek-ai/DeepSeek-V4-Pro-0813|DeepSeek V4 Pro 0813|1000k|384k|tr/lhM|1.32,3.96
deepseek-ai/DeepSeek-V4-Pro|DeepSeek V4 Pro|1024K|384K|tr/h|0.435,0.87,0.003625
deepseek-ai/DeepSeek-V4.1-Flash-1017|DeepSeek V4.1 Flash 1017|1024K|384k|tir/lhM|0.3,1.2
deepseek-ai/DeepSeek-V4.1-Flash|DeepSeek V4.1 Flash|1024K|384k|tir/nlhxM|0.3,1.2
google/gemma-3-12b-it|Gemma 3 12B IT|128K|128K|ti|0.05,0.15
google/gemma-3-27b-it|Gemma 3 27B IT|128K|128K|ti|0.08,0.16
google/gemma-3-4b-it|Gemma 3 4B IT|128K|128K|ti|0.05,0.1
google/gemma-4-26B-A4B-it|Gemma 4 26B A4B IT|256K|32K|tir|0.13,0.4
google/gemma-4-31B-it|Gemma 4 31B IT|256K|32K|tir|0.14,0.4
meta-llama/Llama-3.1-8B-Instruct||128K|4K|t|0.06,0.06
meta-llama/Llama-3.3-70B-Instruct||128K|4K|t|0.59,0.79
moonshotai/Kimi-K2-Instruct-0905||256K|16K|t|1,3
moonshotai/Kimi-K2-Instruct||128K|16K|t|1,3
moonshotai/Kimi-K2-Thinking||256K|256K|tr|0.6,2.5,0.15
moonshotai/Kimi-K2.5||256K|256K|tir|0.6,3,0.1
moonshotai/Kimi-K2.6||256K|256K|tir|0.95,4,0.16
moonshotai/Kimi-K2.7-Code|Kimi K2.7 Code|256K|256K|tir|0.95,4
moonshotai/Kimi-K3|Kimi K3|1000k|128K|tir/lhM|3,15
openai/gpt-oss-120b|GPT OSS 120B|128K|32K|tr/lmh|0.25,0.69
openai/gpt-oss-20b|GPT OSS 20B|128K|32K|tr/lmh|0.1,0.5
stepfun-ai/Step-3.5-Flash|Step 3.5 Flash|256K|256k|tr|0.1,0.3
stepfun-ai/Step-3.7-Flash|Step 3.7 Flash|256K|256k|tir/lmh|0.2,1.15
tencent/Hy3||256K|128k|tr/nlh|0.14,0.58
tencent/Hy4-preview|Hy4 preview|1000k|64k|tr/nh|0.834,2.501
thinkingmachines/Inkling-Small|Inkling Small|512K|512K|tir|0.5,1.2
thinkingmachines/Inkling||1024K|1024K|tir/lmh|1,4.05
zai-org/GLM-4.5-Air||128K|96K|tr|0.13,0.85
zai-org/GLM-4.5V||64K|16K|tir|0.6,1.8
zai-org/GLM-4.6V-Flash||128K|32K|tir|0.3,0.9
zai-org/GLM-4.6||200K|128K|tr|0.55,2.2
zai-org/GLM-4.7-Flash||200k|128k|tr
zai-org/GLM-4.7||200K|128K|tr|0.6,2.2,0.11
zai-org/GLM-5.1||198K|128K|tr|1,3.2,0.2
zai-org/GLM-5.2||256K|128K|tr|1.4,4.4
zai-org/GLM-5.3-Flash||1024K|128K|tir/lhM|0.15,0.5
zai-org/GLM-5.3||1024K|128K|tr/lhM|1.4,4.4
zai-org/GLM-5||198K|128K|tr|1,3.2,0.2
@google-vertex|google-generative-ai
gemini-2.5-flash-lite|Gemini 2.5 Flash-Lite|1024K|64K|tir|0.1,0.4,0.01
gemini-2.5-flash|Gemini 2.5 Flash|1024K|64K|tir|0.3,2.5,0.03
gemini-2.5-pro|Gemini 2.5 Pro|1024K|64K|tir|1.25,10,0.125
gemini-3-flash-preview|Gemini 3 Flash Preview|1024K|64K|tir/ulmh|0.5,3,0.05
gemini-3.1-flash-lite|Gemini 3.1 Flash Lite|1024K|64K|tir/ulmh|0.25,1.5,0.025
gemini-3.1-pro-preview-customtools|Gemini 3.1 Pro Preview Custom Tools|1024K|64K|tir/lmh|2,12,0.2
gemini-3.1-pro-preview|Gemini 3.1 Pro Preview|1024K|64K|tir/lmh|2,12,0.2
gemini-3.5-flash-lite|Gemini 3.5 Flash Lite|1024K|64K|tir/ulmh|0.3,2.5,0.03
gemini-3.5-flash|Gemini 3.5 Flash|1024K|64K|tir/ulmh|1.5,9,0.15
gemini-3.6-flash|Gemini 3.6 Flash|1024K|64K|tir/ulmh|0.75,3.75,0.075
gemini-3.7-flash|Gemini 3.7 Flash|1024K|64K|tir/lmh|0.75,3.75,0.075
gemini-3.8-flash|Gemini 3.8 Flash|1024K|64K|tir/lmh|0.75,3.75,0.075
gemini-4-argon|Gemini 4 Argon|1024K|64K|tir/lmh|2,10,0.1
@amazon-bedrock|bedrock-converse-stream
amazon.nova-2-lite-v1:0|Nova 2 Lite|1000k|65535|tir|0.33,2.75,0.0825,0.33
amazon.nova-lite-v1:0|Nova Lite|300k|10k|ti|0.06,0.24,0.015,0.06
amazon.nova-micro-v1:0|Nova Micro|128k|10k|t|0.035,0.14,0.00875,0.035
amazon.nova-pro-v1:0|Nova Pro|300k|10k|ti|0.8,3.2,0.2,0.8
anthropic.claude-fable-5-1|Claude Fable 5.1|1000k|128k|tir/lmhxM/abcdefghijkl|10,50,0.25,12.5
anthropic.claude-fable-5|Claude Fable 5|1000k|128k|tir/lmhxM/abcdefghij|10,50,1,12.5
anthropic.claude-haiku-4-5-20251001-v1:0|Claude Haiku 4.5|200k|64k|tir//abcd|1,5,0.1,1.25
anthropic.claude-haiku-5-5|Claude Haiku 5.5|1000k|128k|tir/nlmhxM/abcdefghijklm|0.1,0.5,0.01,0.125|100k:0.5,2.5,0.05,0.625
anthropic.claude-opus-4-1-20250805-v1:0|Claude Opus 4.1|200k|32k|tir//bc|15,75,1.5,18.75
anthropic.claude-opus-4-5-20251101-v1:0|Claude Opus 4.5|200k|64k|tir//abcd|5,25,0.5,6.25
anthropic.claude-opus-4-6-v1|Claude Opus 4.6|1000k|128k|tir/nlmhM/abcdef|5.5,27.5,0.55,6.875
anthropic.claude-opus-4-7|Claude Opus 4.7|1000k|128k|tir/nlmhxM/abcdefghi|5,25,0.5,6.25
anthropic.claude-opus-4-8|Claude Opus 4.8|1000k|128k|tir/nlmhxM/abcdefghi|5,25,0.5,6.25
anthropic.claude-opus-5-5|Claude Opus 5.5|1000k|128k|tir/nlmhxM/abcdefghijkl|4,20,0.2,5
anthropic.claude-sonnet-4-5-20250929-v1:0|Claude Sonnet 4.5|200k|64k|tir//abcd|3,15,0.3,3.75
anthropic.claude-sonnet-4-6|Claude Sonnet 4.6|1000k|128k|tir/nlmhM/abcdef|3.3,16.5,0.33,4.125
anthropic.claude-sonnet-5-5|Claude Sonnet 5.5|1000k|128k|tir/nlmhxM/abcdefghijkln|2,10,0.1,2.5
anthropic.claude-sonnet-5|Claude Sonnet 5|1000k|128k|tir/nlmhxM/abcdefghijm|2,10,0.2,2.5
apac.amazon.nova-lite-v1:0|Nova Lite (APAC)|300k|10k|ti|0.063,0.252,0.01575,0.063
apac.amazon.nova-micro-v1:0|Nova Micro (APAC)|128k|10k|t|0.037,0.148,0.00925,0.037
apac.amazon.nova-pro-v1:0|Nova Pro (APAC)|300k|10k|ti|0.84,3.36,0.21,0.84
apac.anthropic.claude-sonnet-4-20250514-v1:0|Claude Sonnet 4 (APAC)|200k|64k|tir//bc|3,15,0.3,3.75
au.anthropic.claude-haiku-4-5-20251001-v1:0|Claude Haiku 4.5 (AU)|200k|64k|tir//abcd|1.1,5.5,0.11,1.375
au.anthropic.claude-haiku-5-5|Claude Haiku 5.5 (AU)|1000k|128k|tir/nlmhxM/abcdefghijklm|0.11,0.55,0.011,0.1375|100k:0.55,2.75,0.055,0.6875
au.anthropic.claude-opus-4-6-v1|AU Anthropic Claude Opus 4.6|1000k|128k|tir/nlmhM/abcdef|5.5,27.5,0.55,6.875
au.anthropic.claude-opus-4-7|Claude Opus 4.7 (AU)|1000k|128k|tir/nlmhxM/abcdefghi|5.5,27.5,0.55,6.875
au.anthropic.claude-opus-4-8|Claude Opus 4.8 (AU)|1000k|128k|tir/nlmhxM/abcdefghi|5.5,27.5,0.55,6.875
au.anthropic.claude-opus-5-5|Claude Opus 5.5 (AU)|1000k|128k|tir/nlmhxM/abcdefghijkl|4.4,22,0.22,5.5
au.anthropic.claude-opus-5|Claude Opus 5 (AU)|1000k|128k|tir/nlmhxM/abcdefghijm|5.5,27.5,0.55,6.875
au.anthropic.claude-sonnet-4-5-20250929-v1:0|Claude Sonnet 4.5 (AU)|200k|64k|tir//abcd|3.3,16.5,0.33,4.125
au.anthropic.claude-sonnet-4-6|AU Anthropic Claude Sonnet 4.6|1000k|128k|tir/nlmhM/abcdef|3.3,16.5,0.33,4.125
au.anthropic.claude-sonnet-5-5|Claude Sonnet 5.5 (AU)|1000k|128k|tir/nlmhxM/abcdefghijkln|2.2,11,0.11,2.75
au.anthropic.claude-sonnet-5|Claude Sonnet 5 (AU)|1000k|128k|tir/nlmhxM/abcdefghijm|2.2,11,0.22,2.75
ca.amazon.nova-lite-v1:0|Nova Lite (CA)|300k|10k|ti|0.064,0.256,0.016,0.064
deepseek.v3-v1:0|DeepSeek-V3.1|160K|80K|tr|0.58,1.68
deepseek.v3.2|DeepSeek V3.2|160K|80K|tr|0.62,1.85
eu.amazon.nova-2-lite-v1:0|Nova 2 Lite (EU)|1000k|65535|tir|0.374,3.157,0.0935,0.374
eu.amazon.nova-lite-v1:0|Nova Lite (EU)|300k|10k|ti|0.069,0.276,0.01725,0.069
eu.amazon.nova-micro-v1:0|Nova Micro (EU)|128k|10k|t|0.04,0.16,0.01,0.04
eu.amazon.nova-pro-v1:0|Nova Pro (EU)|300k|10k|ti|0.92,3.68,0.23,0.92
eu.anthropic.claude-fable-5|Claude Fable 5 (EU)|1000k|128k|tir/lmhxM/abcdefghij|11,55,1.1,13.75
eu.anthropic.claude-haiku-4-5-20251001-v1:0|Claude Haiku 4.5 (EU)|200k|64k|tir//abcd|1.1,5.5,0.11,1.375
eu.anthropic.claude-haiku-5-5|Claude Haiku 5.5 (EU)|1000k|128k|tir/nlmhxM/abcdefghijklm|0.11,0.55,0.011,0.1375|100k:0.55,2.75,0.055,0.6875
eu.anthropic.claude-opus-4-5-20251101-v1:0|Claude Opus 4.5 (EU)|200k|64k|tir//abcd|5.5,27.5,0.55,6.875
eu.anthropic.claude-opus-4-6-v1|Claude Opus 4.6 (EU)|1000k|128k|tir/nlmhM/abcdef|5.5,27.5,0.55,6.875
eu.anthropic.claude-opus-4-7|Claude Opus 4.7 (EU)|1000k|128k|tir/nlmhxM/abcdefghi|5.5,27.5,0.55,6.875
eu.anthropic.claude-opus-4-8|Claude Opus 4.8 (EU)|1000k|128k|tir/nlmhxM/abcdefghi|5.5,27.5,0.55,6.875
eu.anthropic.claude-opus-5-5|Claude Opus 5.5 (EU)|1000k|128k|tir/nlmhxM/abcdefghijkl|4.4,22,0.22,5.5
eu.anthropic.claude-opus-5|Claude Opus 5 (EU)|1000k|128k|tir/nlmhxM/abcdefghijm|5.5,27.5,0.55,6.875
eu.anthropic.claude-sonnet-4-20250514-v1:0|Claude Sonnet 4 (EU)|200k|64k|tir//bc|3,15,0.3,3.75
eu.anthropic.claude-sonnet-4-5-20250929-v1:0|Claude Sonnet 4.5 (EU)|200k|64k|tir//abcd|3.3,16.5,0.33,4.125
eu.anthropic.claude-sonnet-4-6|Claude Sonnet 4.6 (EU)|1000k|128k|tir/nlmhM/abcdef|3.3,16.5,0.33,4.125
eu.anthropic.claude-sonnet-5-5|Claude Sonnet 5.5 (EU)|1000k|128k|tir/nlmhxM/abcdefghijkln|2.2,11,0.11,2.75
eu.anthropic.claude-sonnet-5|Claude Sonnet 5 (EU)|1000k|128k|tir/nlmhxM/abcdefghijm|2.2,11,0.22,2.75
eu.mistral.pixtral-large-2502-v1:0|Pixtral Large (25.02) (EU)|128k|8K|ti|2,6
global.amazon.nova-2-lite-v1:0|Nova 2 Lite (Global)|1000k|65535|tir|0.3,2.5,0.075,0.3
global.anthropic.claude-fable-5-1|Claude Fable 5.1 (Global)|1000k|128k|tir/lmhxM/abcdefghijkl|10,50,0.25,12.5
global.anthropic.claude-fable-5|Claude Fable 5 (Global)|1000k|128k|tir/lmhxM/abcdefghij|10,50,1,12.5
global.anthropic.claude-haiku-4-5-20251001-v1:0|Claude Haiku 4.5 (Global)|200k|64k|tir//abcd|1,5,0.1,1.25
global.anthropic.claude-haiku-5-5|Claude Haiku 5.5 (Global)|1000k|128k|tir/nlmhxM/abcdefghijklm|0.1,0.5,0.01,0.125|100k:0.5,2.5,0.05,0.625
global.anthropic.claude-opus-4-5-20251101-v1:0|Claude Opus 4.5 (Global)|200k|64k|tir//abcd|5,25,0.5,6.25
global.anthropic.claude-opus-4-6-v1|Claude Opus 4.6 (Global)|1000k|128k|tir/nlmhM/abcdef|5,25,0.5,6.25
global.anthropic.claude-opus-4-7|Claude Opus 4.7 (Global)|1000k|128k|tir/nlmhxM/abcdefghi|5,25,0.5,6.25
global.anthropic.claude-opus-4-8|Claude Opus 4.8 (Global)|1000k|128k|tir/nlmhxM/abcdefghi|5,25,0.5,6.25
global.anthropic.claude-opus-5-5|Claude Opus 5.5 (Global)|1000k|128k|tir/nlmhxM/abcdefghijkl|4,20,0.2,5
global.anthropic.claude-opus-5|Claude Opus 5 (Global)|1000k|128k|tir/nlmhxM/abcdefghijm|5,25,0.5,6.25
global.anthropic.claude-sonnet-4-20250514-v1:0|Claude Sonnet 4 (Global)|200k|64k|tir//bc|3,15,0.3,3.75
global.anthropic.claude-sonnet-4-5-20250929-v1:0|Claude Sonnet 4.5 (Global)|200k|64k|tir//abcd|3,15,0.3,3.75
global.anthropic.claude-sonnet-4-6|Claude Sonnet 4.6 (Global)|1000k|128k|tir/nlmhM/abcdef|3,15,0.3,3.75
global.anthropic.claude-sonnet-5-5|Claude Sonnet 5.5 (Global)|1000k|128k|tir/nlmhxM/abcdefghijkln|2,10,0.1,2.5
global.anthropic.claude-sonnet-5|Claude Sonnet 5 (Global)|1000k|128k|tir/nlmhxM/abcdefghijm|2,10,0.2,2.5
global.moonshotai.kimi-k3|Kimi K3 (Global)|1024K|128k|tir|3,15,0.3,3.75
global.openai.gpt-5.6-luna|GPT-5.6 Luna (Global)|1050k|128k|tir/nlmhx|0.2,1.2,0.02,0.25|272k:0.4,1.8,0.04,0.5
global.openai.gpt-5.6-sol|GPT-5.6 Sol (Global)|1050k|128k|tir/nlmhx|4,20,0.4,5|272k:8,30,0.8,10
global.openai.gpt-5.6-terra|GPT-5.6 Terra (Global)|1050k|128k|tir/nlmhx|2,12,0.2,2.5|272k:4,18,0.4,5
global.openai.gpt-6-astra|GPT-6 Astra (Global)|1050k|128k|tir/nlmhx|10,50,1,12.5|272k:20,75,2,25
global.openai.gpt-6-luna|GPT-6 Luna (Global)|1050k|128k|tir/nlmhx|0.1,0.5,0.01,0.125|272k:0.2,0.75,0.02,0.25
global.openai.gpt-6-sol|GPT-6 Sol (Global)|1050k|128k|tir/nlmhx|2,10,0.2,2.5|272k:4,15,0.4,5
global.openai.gpt-6.1-sol|GPT-6.1 Sol (Global)|1050k|128k|tir/nlmhx|2,10,0.1,2.5|272k:4,15,0.2,5
global.openai.gpt-6.1-terra|GPT-6.1 Terra (Global)|1050k|128k|tir/nlmhx|1,5,0.05,1.25|272k:2,7.5,0.1,2.5
global.xai.grok-4.6|Grok 4.6 (Global)|500k|500k|tir|2,6,0.5
global.xai.grok-4.7|Grok 4.7 (Global)|500k|500k|tir|2,6,0.5
global.zai.glm-5.3|GLM-5.3 (Global)|1000k|128k|tr|1.68,5.28,0.312,2.1
google.gemma-4-26b-a4b|Gemma 4 26B A4B IT|256K|32K|tir|0.13,0.4
google.gemma-4-31b|Gemma 4 31B IT|256K|32K|tir|0.14,0.4
google.gemma-4-e2b|Gemma 4 E2B IT|128K|8K|tir|0.04,0.08
in.anthropic.claude-haiku-4-5-20251001-v1:0|Claude Haiku 4.5 (India)|200k|64k|tir//abcd|1.1,5.5,0.11,1.375
in.anthropic.claude-opus-5|Claude Opus 5 (India)|1000k|128k|tir/nlmhxM/abcdefghijm|5.5,27.5,0.55,6.875
in.anthropic.claude-sonnet-5|Claude Sonnet 5 (India)|1000k|128k|tir/nlmhxM/abcdefghijm|2.2,11,0.22,2.75
in.openai.gpt-5.6-luna|GPT-5.6 Luna (India)|1050k|128k|tir/nlmhx|0.22,1.32,0.022,0.275|272k:0.44,1.98,0.044,0.55
in.openai.gpt-5.6-terra|GPT-5.6 Terra (India)|1050k|128k|tir/nlmhx|2.2,13.2,0.22,2.75|272k:4.4,19.8,0.44,5.5
jp.amazon.nova-2-lite-v1:0|Nova 2 Lite (JP)|1000k|65535|tir|0.396,3.311,0.099,0.396
jp.anthropic.claude-haiku-4-5-20251001-v1:0|Claude Haiku 4.5 (JP)|200k|64k|tir//abcd|1.1,5.5,0.11,1.375
jp.anthropic.claude-haiku-5-5|Claude Haiku 5.5 (JP)|1000k|128k|tir/nlmhxM/abcdefghijklm|0.11,0.55,0.011,0.1375|100k:0.55,2.75,0.055,0.6875
jp.anthropic.claude-opus-4-7|Claude Opus 4.7 (JP)|1000k|128k|tir/nlmhxM/abcdefghi|5.5,27.5,0.55,6.875
jp.anthropic.claude-opus-4-8|Claude Opus 4.8 (JP)|1000k|128k|tir/nlmhxM/abcdefghi|5.5,27.5,0.55,6.875
jp.anthropic.claude-opus-5-5|Claude Opus 5.5 (JP)|1000k|128k|tir/nlmhxM/abcdefghijkl|4.4,22,0.22,5.5
jp.anthropic.claude-opus-5|Claude Opus 5 (JP)|1000k|128k|tir/nlmhxM/abcdefghijm|5.5,27.5,0.55,6.875
jp.anthropic.claude-sonnet-4-5-20250929-v1:0|Claude Sonnet 4.5 (JP)|200k|64k|tir//abcd|3.3,16.5,0.33,4.125
jp.anthropic.claude-sonnet-4-6|Claude Sonnet 4.6 (JP)|1000k|128k|tir/nlmhM/abcdef|3.3,16.5,0.33,4.125
jp.anthropic.claude-sonnet-5|Claude Sonnet 5 (JP)|1000k|128k|tir/nlmhxM/abcdefghijm|2.2,11,0.22,2.75
meta.llama3-1-70b-instruct-v1:0|Llama 3.1 70B Instruct|128k|4K|t|0.72,0.72
meta.llama3-1-8b-instruct-v1:0|Llama 3.1 8B Instruct|128k|4K|t|0.22,0.22
meta.llama3-3-70b-instruct-v1:0|Llama 3.3 70B Instruct|128k|4K|t|0.72,0.72
meta.llama4-maverick-17b-instruct-v1:0|Llama 4 Maverick 17B Instruct|1000k|8K|ti|0.24,0.97
meta.llama4-scout-17b-instruct-v1:0|Llama 4 Scout 17B Instruct|10000k|8K|ti|0.17,0.66
minimax.minimax-m2.1|MiniMax-M2.1|192K|128K|tr|0.3,1.2
minimax.minimax-m2.5|MiniMax-M2.5|192K|96K|tr|0.3,1.2
minimax.minimax-m2|MiniMax-M2|204608|128k|tr|0.3,1.2
mistral.devstral-2-123b|Devstral 2 123B|256K|8K|t|0.4,2
mistral.magistral-small-2509|Magistral Small 1.2|128k|40k|tir|0.5,1.5
mistral.ministral-3-14b-instruct|Ministral 14B 3.0|128k|4K|ti|0.2,0.2
mistral.ministral-3-3b-instruct|Ministral 3 3B|256k|8K|ti|0.1,0.1
mistral.ministral-3-8b-instruct|Ministral 3 8B|128k|4K|ti|0.15,0.15
mistral.mistral-large-3-675b-instruct|Mistral Large 3|256K|8K|ti|0.5,1.5
mistral.pixtral-large-2502-v1:0|Pixtral Large (25.02)|128k|8K|ti|2,6
mistral.voxtral-mini-3b-2507|Voxtral Mini 3B 2507|32K|4K|t|0.04,0.04
mistral.voxtral-small-24b-2507|Voxtral Small 24B 2507|32K|8K|t|0.1,0.3
moonshot.kimi-k2-thinking|Kimi K2 Thinking|256K|16k|tr|0.6,2.5
moonshotai.kimi-k2.5|Kimi K2.5|256K|16K|tir|0.6,3
nvidia.nemotron-nano-12b-v2|NVIDIA Nemotron Nano 12B v2 VL BF16|128K|8K|ti|0.2,0.6
nvidia.nemotron-nano-3-30b|NVIDIA Nemotron Nano 3 30B|256K|8K|tr|0.06,0.24
nvidia.nemotron-nano-9b-v2|NVIDIA Nemotron Nano 9B v2|128K|8K|t|0.06,0.23
nvidia.nemotron-super-3-120b|NVIDIA Nemotron 3 Super 120B A12B|256K|128K|tr|0.15,0.65
openai.gpt-5.4|GPT-5.4|1000k|128k|tir/nlmhx|2.75,16.5,0.275
openai.gpt-5.5|GPT-5.5|1000k|128k|tir/nlmhx|5.5,33,0.55
openai.gpt-5.6-luna|GPT-5.6 Luna|1050k|128k|tir/nlmhx|0.22,1.32,0.022,0.275|272k:0.44,1.98,0.044,0.55
openai.gpt-5.6-sol|GPT-5.6 Sol|1050k|128k|tir/nlmhx|4.4,22,0.44,5.5|272k:8.8,33,0.88,11
openai.gpt-5.6-terra|GPT-5.6 Terra|1050k|128k|tir/nlmhx|2.2,13.2,0.22,2.75|272k:4.4,19.8,0.44,5.5
openai.gpt-6-astra|GPT-6 Astra|1050k|128k|tir/nlmhx|11,55,1.1,13.75|272k:22,82.5,2.2,27.5
openai.gpt-6-luna|GPT-6 Luna|1050k|128k|tir/nlmhx|0.11,0.55,0.011,0.1375|272k:0.22,0.825,0.022,0.275
openai.gpt-6-sol|GPT-6 Sol|1050k|128k|tir/nlmhx|2.2,11,0.22,2.75|272k:4.4,16.5,0.44,5.5
openai.gpt-6.1-sol|GPT-6.1 Sol|1050k|128k|tir/nlmhx|2.2,11,0.11,2.75|272k:4.4,16.5,0.22,5.5
openai.gpt-6.1-terra|GPT-6.1 Terra|1050k|128k|tir/nlmhx|1.1,5.5,0.055,1.375|272k:2.2,8.25,0.11,2.75
openai.gpt-oss-120b-1:0|gpt-oss-120b|128K|128k|tr|0.15,0.6
openai.gpt-oss-120b|gpt-oss-120b|128K|128K|tr|0.15,0.6
openai.gpt-oss-20b-1:0|gpt-oss-20b|128K|128k|tr|0.07,0.3
openai.gpt-oss-20b|gpt-oss-20b|128K|128K|tr|0.07,0.3
qwen.qwen3-235b-a22b-2507-v1:0|Qwen3 235B-A22B Instruct 2507|256K|128K|t|0.22,0.88
qwen.qwen3-32b-v1:0|Qwen3 32B|32K|16K|tr|0.15,0.6
qwen.qwen3-coder-30b-a3b-v1:0|Qwen3-Coder 30B-A3B Instruct|256K|128K|t|0.15,0.6
qwen.qwen3-coder-480b-a35b-v1:0|Qwen3-Coder 480B-A35B Instruct|128K|64K|t|0.45,1.8
qwen.qwen3-coder-next|Qwen3 Coder Next|256K|64K|t|0.5,1.2
qwen.qwen3-next-80b-a3b|Qwen3-Next 80B-A3B Instruct|256K|262k|t|0.15,1.2
qwen.qwen3-vl-235b-a22b|Qwen3 VL 235B A22B Instruct|256K|262k|ti|0.53,2.66
us-gov.openai.gpt-oss-120b-1:0|gpt-oss-120b (GovCloud)|128k|16K|tr|0.18,0.72
us-gov.openai.gpt-oss-20b-1:0|gpt-oss-20b (GovCloud)|128k|16K|tr|0.084,0.36
us.amazon.nova-2-lite-v1:0|Nova 2 Lite (US)|1000k|65535|tir|0.33,2.75,0.0825,0.33
us.amazon.nova-lite-v1:0|Nova Lite (US)|300k|10k|ti|0.06,0.24,0.015,0.06
us.amazon.nova-micro-v1:0|Nova Micro (US)|128k|10k|t|0.035,0.14,0.00875,0.035
us.amazon.nova-premier-v1:0|Nova Premier (US)|1000k|10k|ti|2.5,12.5,0.625,2.5
us.amazon.nova-pro-v1:0|Nova Pro (US)|300k|10k|ti|0.8,3.2,0.2,0.8
us.anthropic.claude-fable-5-1|Claude Fable 5.1 (US)|1000k|128k|tir/lmhxM/abcdefghijkl|11,55,0.275,13.75
us.anthropic.claude-fable-5|Claude Fable 5 (US)|1000k|128k|tir/lmhxM/abcdefghij|11,55,1.1,13.75
us.anthropic.claude-haiku-4-5-20251001-v1:0|Claude Haiku 4.5 (US)|200k|64k|tir//abcd|1.1,5.5,0.11,1.375
us.anthropic.claude-haiku-5-5|Claude Haiku 5.5 (US)|1000k|128k|tir/nlmhxM/abcdefghijklm|0.11,0.55,0.011,0.1375|100k:0.55,2.75,0.055,0.6875
us.anthropic.claude-opus-4-1-20250805-v1:0|Claude Opus 4.1 (US)|200k|32k|tir//bc|15,75,1.5,18.75
us.anthropic.claude-opus-4-5-20251101-v1:0|Claude Opus 4.5 (US)|200k|64k|tir//abcd|5.5,27.5,0.55,6.875
us.anthropic.claude-opus-4-6-v1|Claude Opus 4.6 (US)|1000k|128k|tir/nlmhM/abcdef|5.5,27.5,0.55,6.875
us.anthropic.claude-opus-4-7|Claude Opus 4.7 (US)|1000k|128k|tir/nlmhxM/abcdefghi|5.5,27.5,0.55,6.875
us.anthropic.claude-opus-4-8|Claude Opus 4.8 (US)|1000k|128k|tir/nlmhxM/abcdefghi|5.5,27.5,0.55,6.875
us.anthropic.claude-opus-5-5|Claude Opus 5.5 (US)|1000k|128k|tir/nlmhxM/abcdefghijkl|4.4,22,0.22,5.5
us.anthropic.claude-opus-5|Claude Opus 5 (US)|1000k|128k|tir/nlmhxM/abcdefghijm|5.5,27.5,0.55,6.875
us.anthropic.claude-sonnet-4-20250514-v1:0|Claude Sonnet 4 (US)|200k|64k|tir//bc|3,15,0.3,3.75
us.anthropic.claude-sonnet-4-5-20250929-v1:0|Claude Sonnet 4.5 (US)|200k|64k|tir//abcd|3.3,16.5,0.33,4.125
us.anthropic.claude-sonnet-4-6|Claude Sonnet 4.6 (US)|1000k|128k|tir/nlmhM/abcdef|3.3,16.5,0.33,4.125
us.anthropic.claude-sonnet-5-5|Claude Sonnet 5.5 (US)|1000k|128k|tir/nlmhxM/abcdefghijkln|2.2,11,0.11,2.75
us.anthropic.claude-sonnet-5|Claude Sonnet 5 (US)|1000k|128k|tir/nlmhxM/abcdefghijm|2.2,11,0.22,2.75
us.meta.llama3-1-70b-instruct-v1:0|Llama 3.1 70B Instruct (US)|128k|4K|t|0.72,0.72
us.meta.llama3-1-8b-instruct-v1:0|Llama 3.1 8B Instruct (US)|128k|4K|t|0.22,0.22
us.meta.llama3-3-70b-instruct-v1:0|Llama 3.3 70B Instruct (US)|128k|4K|t|0.72,0.72
us.meta.llama4-maverick-17b-instruct-v1:0|Llama 4 Maverick 17B Instruct (US)|1000k|8K|ti|0.24,0.97
us.meta.llama4-scout-17b-instruct-v1:0|Llama 4 Scout 17B Instruct (US)|10000k|8K|ti|0.17,0.66
us.mistral.pixtral-large-2502-v1:0|Pixtral Large (25.02) (US)|128k|8K|ti|2,6
us.moonshotai.kimi-k3|Kimi K3 (US)|1024K|128k|tir|3.3,16.5,0.33,4.125
us.openai.gpt-5.6-luna|GPT-5.6 Luna (US)|1050k|128k|tir/nlmhx|0.22,1.32,0.022,0.275|272k:0.44,1.98,0.044,0.55
us.openai.gpt-5.6-sol|GPT-5.6 Sol (US)|1050k|128k|tir/nlmhx|4.4,22,0.44,5.5|272k:8.8,33,0.88,11
us.openai.gpt-5.6-terra|GPT-5.6 Terra (US)|1050k|128k|tir/nlmhx|2.2,13.2,0.22,2.75|272k:4.4,19.8,0.44,5.5
us.openai.gpt-6-astra|GPT-6 Astra (US)|1050k|128k|tir/nlmhx|11,55,1.1,13.75|272k:22,82.5,2.2,27.5
us.openai.gpt-6-luna|GPT-6 Luna (US)|1050k|128k|tir/nlmhx|0.11,0.55,0.011,0.1375|272k:0.22,0.825,0.022,0.275
us.openai.gpt-6-sol|GPT-6 Sol (US)|1050k|128k|tir/nlmhx|2.2,11,0.22,2.75|272k:4.4,16.5,0.44,5.5
us.openai.gpt-6.1-sol|GPT-6.1 Sol (US)|1050k|128k|tir/nlmhx|2.2,11,0.11,2.75|272k:4.4,16.5,0.22,5.5
us.openai.gpt-6.1-terra|GPT-6.1 Terra (US)|1050k|128k|tir/nlmhx|1.1,5.5,0.055,1.375|272k:2.2,8.25,0.11,2.75
us.writer.palmyra-x4-v1:0|Palmyra X4 (US)|120K|8K|tr|2.5,10
us.writer.palmyra-x5-v1:0|Palmyra X5 (US)|1040k|8K|tr|0.6,6
us.xai.grok-4.6|Grok 4.6 (US)|500k|500k|tir|2.2,6.6,0.55
us.xai.grok-4.7|Grok 4.7 (US)|500k|500k|tir|2.2,6.6,0.55
us.zai.glm-5.3|GLM-5.3 (US)|1000k|128k|tr|1.848,5.808,0.3432,2.31
writer.palmyra-x4-v1:0|Palmyra X4|120K|8K|tr|2.5,10
writer.palmyra-x5-v1:0|Palmyra X5|1040k|8K|tr|0.6,6
xai.grok-4.3|Grok 4.3|1000k|128K|tir|1.25,2.5,0.2
xai.grok-4.6|Grok 4.6|500k|500k|tir|2.2,6.6,0.55
zai.glm-4.7-flash|GLM-4.7-Flash|198K|128K|tr|0.07,0.4
zai.glm-4.7|GLM-4.7|198K|128K|tr|0.6,2.2
zai.glm-5|GLM-5|198K|128K|tr|1,3.2
@azure-openai-responses|openai-responses
chat-latest|Chat Latest|400k|128k|tir|5,30,0.5
gpt-4-turbo|GPT-4 Turbo|128k|4K|ti|10,30
gpt-4.1-mini|GPT-4.1 mini|1047576|32K|ti|0.4,1.6,0.1
gpt-4.1-nano|GPT-4.1 nano|1047576|32K|ti|0.1,0.4,0.025
gpt-4.1|GPT-4.1|1047576|32K|ti|2,8,0.5
gpt-4o-2024-05-13|GPT-4o (2024-05-13)|128k|4K|ti|5,15
gpt-4o-2024-08-06|GPT-4o (2024-08-06)|128k|16K|ti|2.5,10,1.25
gpt-4o-2024-11-20|GPT-4o (2024-11-20)|128k|16K|ti|2.5,10,1.25
gpt-4o-mini|GPT-4o mini|128k|16K|ti|0.15,0.6,0.075
gpt-4o|GPT-4o|128k|16K|ti|2.5,10,1.25
gpt-4|GPT-4|8K|8K|t|30,60
gpt-5-chat-latest|GPT-5 Chat Latest|128k|16K|ti|1.25,10,0.125
gpt-5-mini|GPT-5 Mini|400k|128k|tir/lmh|0.25,2,0.025
gpt-5-nano|GPT-5 Nano|400k|128k|tir/lmh|0.05,0.4,0.005
gpt-5-pro|GPT-5 Pro|400k|128k|tir/lmh|15,120
gpt-5.1|GPT-5.1|400k|128k|tir/lmh|1.25,10,0.125
gpt-5.2-pro|GPT-5.2 Pro|400k|128k|tir/lmhx|21,168
gpt-5.2|GPT-5.2|400k|128k|tir/lmhx|1.75,14,0.175
gpt-5.3-codex-spark|GPT-5.3 Codex Spark|128k|32k|tir/lmhx|1.75,14,0.175
gpt-5.3-codex|GPT-5.3 Codex|400k|128k|tir/lmhx|1.75,14,0.175
gpt-5.4-mini|GPT-5.4 mini|400k|128k|tir/lmhx|0.75,4.5,0.075
gpt-5.4-nano|GPT-5.4 nano|400k|128k|tir/lmhx|0.2,1.25,0.02
gpt-5.4-pro|GPT-5.4 Pro|1050k|128k|tir/lmhx|30,180
gpt-5.4|GPT-5.4|1050k|128k|tir/lmhx|2.5,15,0.25
gpt-5.5-pro|GPT-5.5 Pro|1050k|128k|tir/mhx|30,180
gpt-5.5|GPT-5.5|1050k|128k|tir/lmhx|5,30,0.5
gpt-5.6-cyber|GPT-5.6 Cyber|400k|128k|tir/lmhxM|12.5,75,1.25,15.625
gpt-5.6-luna|GPT-5.6 Luna|1050k|128k|tir/lmhxM|0.2,1.2,0.02,0.25
gpt-5.6-sol|GPT-5.6 Sol|1050k|128k|tir/lmhxM|4,20,0.4,5
gpt-5.6-terra|GPT-5.6 Terra|1050k|128k|tir/lmhxM|2,12,0.2,2.5
gpt-5|GPT-5|400k|128k|tir/lmh|1.25,10,0.125
gpt-6-astra|GPT-6 Astra|272k|128k|tir/lmhxM|10,50,1,12.5
gpt-6-luna|GPT-6 Luna|272k|128k|tir/nlmhxM|0.1,0.5,0.01,0.125
gpt-6-sol|GPT-6 Sol|272k|128k|tir/nlmhxM|2,10,0.2,2.5
gpt-6.1-sol|GPT-6.1 Sol|272k|128k|tir/lmhxM|2,10,0.1,2.5
gpt-6.1-terra|GPT-6.1 Terra|272k|128k|tir/nlmhxM|1,5,0.05,1.25
gpt-daybreak-blue-latest|Daybreak Blue|1050k|128k|tir|4,20,0.4,5
gpt-daybreak-red-latest|Daybreak Red|400k|128k|tir|12.5,75,1.25,15.625
o1-pro||200k|100k|tir|150,600
o1||200k|100k|tir|15,60,7.5
o3-mini||200k|100k|tr|1.1,4.4,0.55
o3-pro||200k|100k|tir|20,80
o3||200k|100k|tir|2,8,0.5
o4-mini||200k|100k|tir|1.1,4.4,0.275
@openrouter|openai-completions
aion-labs/aion-2.0|Aion-2.0|128K|32K|tr/lmh|0.8,1.6,0.2
aion-labs/aion-3.0-mini|Aion-3.0-Mini|128K|32K|tr/lmh|0.7,1.4,0.18
aion-labs/aion-3.0|Aion-3.0|128K|32K|tr/lmh|3,6,0.75
aion-labs/aion-3.5-mini|Aion 3.5 Mini|256K|32K|tr/lhM|0.7,1.4,0.18
aion-labs/aion-3.5|Aion 3.5|256K|32K|tr/lhM|3,6,0.75
amazon/nova-2-lite-v1|Nova 2 Lite|1000k|65535|tir|0.3,2.5
amazon/nova-lite-v1|Nova Lite 1.0|300k|5K|ti|0.06,0.24
amazon/nova-micro-v1|Nova Micro 1.0|128k|5K|t|0.035,0.14
amazon/nova-premier-v1|Nova Premier 1.0|1000k|32k|ti|2.5,12.5,0.625
amazon/nova-pro-v1|Nova Pro 1.0|300k|5K|ti|0.8,3.2
anthropic/claude-fable-5.1|Claude Fable 5.1|1000k|128k|tir/lmhxM/abcdefghijkl|10,50,0.25,12.5
anthropic/claude-fable-5|Claude Fable 5|1000k|128k|tir/lmhxM/abcdefghij|10,50,1,12.5
anthropic/claude-haiku-4.5|Claude Haiku 4.5|200k|64k|tir//abcd|1,5,0.1,1.25
anthropic/claude-haiku-5.5|Claude Haiku 5.5|1000k|128k|tir/nlmhxM/abcdefghijklm|0.1,0.5,0.01,0.125|100k:0.5,2.5,0.05,0.625
anthropic/claude-opus-4.1|Claude Opus 4.1|200k|32k|tir//bc|15,75,1.5,18.75
anthropic/claude-opus-4.5|Claude Opus 4.5|200k|64k|tir//abcd|5,25,0.5,6.25
anthropic/claude-opus-4.6|Claude Opus 4.6|1000k|128k|tir/nlmhM/abcdef|5,25,0.5,6.25
anthropic/claude-opus-4.7|Claude Opus 4.7|1000k|128k|tir/nlmhxM/abcdefghi|5,25,0.5,6.25
anthropic/claude-opus-4.8|Claude Opus 4.8|1000k|128k|tir/nlmhxM/abcdefghi|5,25,0.5,6.25
anthropic/claude-opus-5.5|Claude Opus 5.5|1000k|128k|tir/lmhxM/abcdefghijkl|4,20,0.2,5
anthropic/claude-opus-5|Claude Opus 5|1000k|128k|tir/nlmhxM/abcdefghijm|5,25,0.5,6.25
anthropic/claude-sonnet-4.5|Claude Sonnet 4.5|1000k|64k|tir//abcd|3,15,0.3,3.75|200k:6,22.5,0.6,7.5
anthropic/claude-sonnet-4.6|Claude Sonnet 4.6|1000k|128k|tir/nlmhM/abcdef|3,15,0.3,3.75
anthropic/claude-sonnet-5.5|Claude Sonnet 5.5|1000k|128k|tir/lmhxM/abcdefghijkln|2,10,0.1,2.5
anthropic/claude-sonnet-5|Claude Sonnet 5|1000k|128k|tir/nlmhxM/abcdefghijm|2,10,0.2,2.5
bytedance-seed/seed-1.6-flash|Seed 1.6 Flash|256K|32K|tir|0.075,0.3|128k:0.1,0.8
bytedance-seed/seed-1.6|Seed 1.6|256K|32K|tir|0.25,2|128k:0.5,4
bytedance-seed/seed-2-1-turbo|Seed 2.1 Turbo|256K||tir|0.5,2.5
bytedance-seed/seed-2.0-code|Seed-2.0-Code|256K|128K|tir/nlmh|0.5,3|128k:1,6
bytedance-seed/seed-2.0-lite|Seed-2.0-Lite|256K|128K|tir/nulmh|0.25,2|128k:0.5,4
bytedance-seed/seed-2.0-mini|Seed-2.0-Mini|256K|128K|tir/nulmh|0.1,0.4|128k:0.2,0.8
cohere/command-a-plus|Command A+|192k|64k|tir|0.3,1.5,0.15
cohere/command-r-08-2024|Command R (08-2024)|128k|4k|t|0.15,0.6
cohere/command-r-plus-08-2024|Command R+ (08-2024)|128k|4k|t|2.5,10
cohere/north-mini-code:free|North Mini Code (free)|256k|64k|tr|0,0,0,0
deepseek/deepseek-chat-v3-0324|DeepSeek V3 0324|128k||t|0.29,1.14,0.11
deepseek/deepseek-chat-v3.1|DeepSeek V3.1|160K||tr|0.25,0.95,0.13
deepseek/deepseek-chat|DeepSeek V3|128k|16k|t|0.2574,1.0287
deepseek/deepseek-r1-0528|R1 0528|160K|32K|tr/lmh|0.5,2.15,0.35
deepseek/deepseek-v3.1-terminus|DeepSeek V3.1 Terminus|160K||tr|0.27,1
deepseek/deepseek-v3.2-exp|DeepSeek V3.2 Exp|160K||tr|0.27,0.41
deepseek/deepseek-v3.2|DeepSeek V3.2|160K||tr|0.26,0.38,0.13
deepseek/deepseek-v4-flash-0731|DeepSeek V4 Flash 0731|1024K||tr/nlhM|0.119,0.238,0.0238
deepseek/deepseek-v4-flash-vision-exp|DeepSeek V4 Flash Vision Exp|1024K|256K|tir/nlhM|0.2156,0.6468,0.00686
deepseek/deepseek-v4-flash|DeepSeek V4 Flash 0423|1048575||tr/nhx|0.091,0.182,0.0182
deepseek/deepseek-v4-pro-0813|DeepSeek V4 Pro 0813|1024K||tr/nlhM|0.115,4,0.11
deepseek/deepseek-v4-pro|DeepSeek V4 Pro 0423|1024K|384K|tr/nhx|1.6,3.2,0.135
deepseek/deepseek-v4.1-flash-1017|DeepSeek V4.1 Flash 1017|1024K|384K|tir/nlhM|0.15,0.6,0.003
deepseek/deepseek-v4.1-flash|DeepSeek V4.1 Flash|1024K||tir/nlhM|0.045,0.5,0.006
dots-studio/dots-3-note-preview:free|Dots3-Note Preview (free)|512k||tir|0,0,0,0
elorian/glimpse|Glimpse|256K|256k|tir|0.6,3,0.06
fireworks/ember-1|Ember-1|1024K||tir/nlhM|3,15,0.3
google/gemini-2.5-flash-lite|Gemini 2.5 Flash Lite|1024K|65535|tir|0.1,0.4,0.01,0.083333
google/gemini-2.5-flash|Gemini 2.5 Flash|1024K|65535|tir|0.3,2.5,0.03,0.083333
google/gemini-2.5-pro-preview|Gemini 2.5 Pro Preview 06-05|1024K|64K|tir/lmh|1.25,10,0.125,0.375|200k:2.5,15,0.25,0.375
google/gemini-2.5-pro|Gemini 2.5 Pro|1024K|64K|tir/lmh|1.25,10,0.125,0.375|200k:2.5,15,0.25,0.375
google/gemini-3-flash-preview|Gemini 3 Flash Preview|1024K|64K|tir/nulmh|0.5,3,0.05,0.083333
google/gemini-3.1-flash-lite-preview|Gemini 3.1 Flash Lite Preview|1024K|64K|tir/nulmh|0.25,1.5,0.025,0.083333
google/gemini-3.1-flash-lite|Gemini 3.1 Flash Lite|1024K|64K|tir/nulmh|0.25,1.5,0.025,0.083333
google/gemini-3.1-pro-preview-customtools|Gemini 3.1 Pro Preview Custom Tools|1024K|64K|tir/lmh|2,12,0.2,0.375|200k:4,18,0.4,0.375
google/gemini-3.1-pro-preview|Gemini 3.1 Pro Preview|1024K|64K|tir/lmh|2,12,0.2,0.375|200k:4,18,0.4,0.375
google/gemini-3.5-flash-lite|Gemini 3.5 Flash Lite|1024K|64K|tir/ulmh|0.3,2.5,0.03,0.083333
google/gemini-3.5-flash|Gemini 3.5 Flash|1024K|64K|tir/ulmh|1.5,9,0.15,0.083333
google/gemini-3.6-flash|Gemini 3.6 Flash|1024K|64K|tir/ulmh|0.75,3.75,0.075,0.041667
google/gemini-3.7-flash|Gemini 3.7 Flash|1024K|64K|tir/lmh|0.75,3.75,0.075,0.041667
google/gemini-3.8-flash|Gemini 3.8 Flash|1024K|64K|tir/lmh|0.825,4.125,0.0825,0.041667
google/gemini-4-argon|Gemini 4 Argon|1024K|32K|tir/lmh|2,10,0.1,0.1875
google/gemma-3-12b-it|Gemma 3 12B|128K|16K|ti|0.05,0.15
google/gemma-3-27b-it|Gemma 3 27B|128K||ti|0.08,0.35,0.04
google/gemma-4-26b-a4b-it:free|Gemma 4 26B A4B (free)|256K|32K|tir|0,0,0,0
google/gemma-4-26b-a4b-it|Gemma 4 26B A4B|256K|32K|tir|0.074,0.223,0.037
google/gemma-4-31b-it:free|Gemma 4 31B (free)|256K|32K|tir|0,0,0,0
google/gemma-4-31b-it|Gemma 4 31B|256K|16K|tir|0.2,0.4
ibm-granite/granite-4.2-8b|Granite 4.2 8B|128K||tr/nlh|0.06,0.15,0.015
inception/mercury-2.5|Mercury 2.5|260k|64K|tr/lmh|0.04,0.15,0.004
inception/mercury-2|Mercury 2|128k|50k|tr/lmh|0.25,0.75,0.025
inception/mercury-3|Mercury 3|1000k|128K|tr/nlmh|0.1,0.35,0.01
inclusionai/ling-3.0-flash-vl|Ling 3.0 Flash VL|128K|32K|tir|0.06,0.18,0.012
inclusionai/ling-3.0-flash|Ling 3.0 Flash|256K|32K|tr|0.021,0.063,0.0042
inclusionai/ling-3.1-flash|Ling 3.1 Flash|1000k|256K|tr|0.075,0.225,0.015
liquid/lfm-2.5-2.6b:free|LFM2.5-2.6B (free)|64K|8K|tr/lmh|0,0,0,0
liquid/lfm-2.5-2.6b|LFM2.5-2.6B|128k|8K|tr/lmh|0.35,0.5,0.04
liquid/lfm-2.5-24b-a2b|LFM2.5-24B-A2B|128k|8K|tr/lmh|0.05,0.7,0.025
meituan/longcat-2.0|LongCat 2.0|1048756|256K|tr|0.3,1.2,0.006
meta-llama/llama-3.1-70b-instruct|Llama 3.1 70B Instruct|128K|16K|t|0.4,0.4
meta-llama/llama-3.1-8b-instruct|Llama 3.1 8B Instruct|128K||t|0.05,0.08,0.025
meta-llama/llama-3.3-70b-instruct|Llama 3.3 70B Instruct|128K|16K|t|0.1,0.32
meta-llama/llama-4-maverick|Llama 4 Maverick|128k|16K|ti|0.1875,0.6525,0.05
meta-llama/llama-4-scout|Llama 4 Scout|320K|16K|ti|0.1,0.3
meta/muse-glimmer-30b|Muse Glimmer 30B|128K|16K|tir/lmhx|0.3,1.2,0.04
meta/muse-spark-1.1|Muse Spark 1.1|1024K||tir/ulmhx|1.25,4.25,0.15
meta/muse-spark-1.2-contributor|Muse Spark 1.2 Contributor|1024K||tir/ulmhx|0.1,0.2,0.002
meta/muse-spark-1.2|Muse Spark 1.2|1024K||tir/ulmhx|1.25,4.25,0.15
meta/muse-spark-1.3-contributor|Muse Spark 1.3 Contributor|1024K||tir/ulmhxM|0.1,0.2,0.002
meta/muse-spark-1.3|Muse Spark 1.3|1024K||tir/ulmhxM|1.25,4.25,0.15
meta/muse-spark-open|Muse Spark Open|1024K||tir/lmhx|1.25,4.25,0.15
meta/muse-wonder|Muse Wonder|1024K||tir/ulmhxM|4,20,0.2
minimax/minimax-m1|MiniMax M1|1000k|40k|tr|0.55,2.2
minimax/minimax-m2.1|MiniMax M2.1|200K|128K|tr/lmh|0.3,1.2,0.03
minimax/minimax-m2.5|MiniMax M2.5|198k|32K|tr/lmh|0.27,0.95,0.03
minimax/minimax-m2.7|MiniMax M2.7|200K|128K|tr/lmh|0.3,1.2,0.06
minimax/minimax-m2|MiniMax M2|200K|128K|tr/lmh|0.255,1.02
minimax/minimax-m3.1-flash|MiniMax M3.1 Flash|1024K|512K|tir/lmhxM|0.15,0.6,0.015
minimax/minimax-m3|MiniMax M3|512K|512k|tir|0.3,1.2,0.06
mistralai/codestral-2508|Codestral 2508|256k|200K|t|0.3,0.9,0.03
mistralai/devstral-2512|Devstral 2 2512|256K|209715|t|0.4,2,0.04
mistralai/ministral-14b-2512|Ministral 3 14B 2512|256K|209715|ti|0.2,0.2,0.02
mistralai/ministral-3b-2512|Ministral 3 3B 2512|128K|104857|ti|0.1,0.1,0.01
mistralai/ministral-8b-2512|Ministral 3 8B 2512|256K|209715|ti|0.15,0.15,0.015
mistralai/mistral-large-2407|Mistral Large 2407|128K|104857|t|2,6,0.2
mistralai/mistral-large-2512|Mistral Large 3 2512|256K|209715|ti|0.5,1.5,0.05
mistralai/mistral-large-4-0|Mistral Large 4|1024K|256K|tir/nh|0.7,2.1,0.07
mistralai/mistral-large|Mistral Large|128k|100K|t|2,6,0.2
mistralai/mistral-medium-3-5|Mistral Medium 3.5|256K|209715|tir/nh|1.5,7.5
mistralai/mistral-medium-3.1|Mistral Medium 3.1|128K|104857|ti|0.4,2,0.04
mistralai/mistral-medium-3|Mistral Medium 3|128K|104857|ti|0.4,2,0.04
mistralai/mistral-nemo|Mistral Nemo|128K|16K|t|0.029,0.03
mistralai/mistral-saba|Saba|32K|26214|t|0.2,0.6,0.02
mistralai/mistral-small-2603|Mistral Small 4|256K|209715|tir/nh|0.15,0.6,0.015
mistralai/mistral-small-3.1-24b-instruct|Mistral Small 3.1 24B|128k|100K|ti|0.351,0.555
mistralai/mistral-small-3.2-24b-instruct|Mistral Small 3.2 24B|128k|16K|ti|0.075,0.2
mistralai/mixtral-8x22b-instruct|Mixtral 8x22B Instruct|64K|52428|t|2,6,0.2
mistralai/voxtral-small-24b-2507|Voxtral Small 24B 2507|32K|26214|t|0.1,0.3,0.01
moonshotai/kimi-k2-0905|Kimi K2 0905|256K|96K|t|0.6,2.5
moonshotai/kimi-k2-thinking|Kimi K2 Thinking|256K|96K|tr/lmh|0.6,2.5,0.15
moonshotai/kimi-k2.5|Kimi K2.5|256K||tir|0.41,2.06,0.07
moonshotai/kimi-k2.6|Kimi K2.6|256K|256K|tir|0.65,3.41,0.15
moonshotai/kimi-k2.7-code|Kimi K2.7 Code|256K|256K|tir/lmh|0.6,3.5,0.15
moonshotai/kimi-k2|Kimi K2 0711|128K|96K|t|0.57,2.3
moonshotai/kimi-k3.1-pro|Kimi K3.1 Pro|1024K|128K|tir/nlhM|2,10,0.2
moonshotai/kimi-k3|Kimi K3|1024K|128K|tir/nlhM|0.192,15,0.182
nex-agi/nex-n2.5-pro|Nex-N2.5-Pro|256K||tir/nmh|0.075,0.25,0.015
nvidia/nemotron-3-nano-30b-a3b|Nemotron 3 Nano 30B A3B|256K||tr|0.06,0.24,0.012
nvidia/nemotron-3-nano-omni-30b-a3b-reasoning:free|Nemotron 3 Nano Omni (free)|256k|64K|tir|0,0,0,0
nvidia/nemotron-3-super-120b-a12b|Nemotron 3 Super|1024K|256K|tr/nlm|0.3,2.4,0.15
nvidia/nemotron-3-ultra-550b-a55b:free|Nemotron 3 Ultra (free)|1000k|64K|tr/nmh|0,0,0,0
nvidia/nemotron-3-ultra-550b-a55b|Nemotron 3 Ultra|202800||tr/nmh|0.6,2.4,0.12
nvidia/nemotron-3.5-lightning:free|Nemotron 3.5 Lightning (free)|1000k|64K|tr|0,0,0,0
nvidia/nemotron-3.5-lightning|Nemotron 3.5 Lightning|256K||tr|0.07,0.2,0.04
nvidia/nemotron-3.5-super-vl:free|Nemotron 3.5 Super VL (free)|1000k|128K|tir|0,0,0,0
nvidia/nemotron-3.5-super-vl|Nemotron 3.5 Super VL|256K||tir|0.15,0.5,0.02
openai/gpt-3.5-turbo-0613|GPT-3.5 Turbo (older v0613)|4095||t|1,2
openai/gpt-3.5-turbo-16k|GPT-3.5 Turbo 16k|16385||t|3,4
openai/gpt-4.1-mini|GPT-4.1 Mini|1047576|32K|ti|0.4,1.6,0.1
openai/gpt-4.1-nano|GPT-4.1 Nano|1047576|32K|ti|0.1,0.4,0.03
openai/gpt-4.1|GPT-4.1|1047576|32K|ti|2,8,0.5
openai/gpt-4o-2024-05-13|GPT-4o (2024-05-13)|128k|4K|ti|5,15
openai/gpt-4o-2024-08-06|GPT-4o (2024-08-06)|128k|16K|ti|2.5,10,1.25
openai/gpt-4o-2024-11-20|GPT-4o (2024-11-20)|128k|16K|ti|2.5,10,1.25
openai/gpt-4o-mini-2024-07-18|GPT-4o-mini (2024-07-18)|128k|16K|ti|0.15,0.6,0.075
openai/gpt-4o-mini|GPT-4o-mini|128k|16K|ti|0.15,0.6,0.075
openai/gpt-4o|GPT-4o|128k|16K|ti|2.5,10,1.25
openai/gpt-4|GPT-4|8191||t|30,60
openai/gpt-5-mini|GPT-5 Mini|400k|128k|tir/ulmh|0.25,2,0.025
openai/gpt-5-nano|GPT-5 Nano|400k|128k|tir/ulmh|0.05,0.4,0.005
openai/gpt-5-pro|GPT-5 Pro|400k|128k|tir/h|15,120
openai/gpt-5.1-codex-max|GPT-5.1-Codex-Max|400k|128k|tir/lmhx|1.25,10,0.125
openai/gpt-5.1-codex-mini|GPT-5.1-Codex-Mini|400k|128k|tir/lmh|0.25,2,0.03
openai/gpt-5.1-codex|GPT-5.1-Codex|400k|128k|tir/lmh|1.25,10,0.13
openai/gpt-5.1|GPT-5.1|400k|128k|tir/nlmh|1.25,10,0.125
openai/gpt-5.2-chat|GPT-5.2 Chat|128k|32k|ti|1.75,14,0.175
openai/gpt-5.2-codex|GPT-5.2-Codex|400k|128k|tir/lmhx|1.75,14,0.175
openai/gpt-5.2-pro|GPT-5.2 Pro|400k|128k|tir/mhx|21,168
openai/gpt-5.2|GPT-5.2|400k|128k|tir/nlmhx|1.75,14,0.175
openai/gpt-5.3-codex|GPT-5.3-Codex|400k|128k|tir/nlmhx|1.75,14,0.175
openai/gpt-5.4-mini|GPT-5.4 Mini|400k|128k|tir/nlmhx|0.75,4.5,0.075
openai/gpt-5.4-nano|GPT-5.4 Nano|400k|128k|tir/nlmhx|0.2,1.25,0.02
openai/gpt-5.4-pro|GPT-5.4 Pro|1050k|128k|tir/mhx|30,180|272k:60,270
openai/gpt-5.4|GPT-5.4|1050k|128k|tir/nlmhx|2.5,15,0.25|272k:5,22.5,0.5
openai/gpt-5.5-pro|GPT-5.5 Pro|1050k|128k|tir/mhx|30,180|272k:60,270
openai/gpt-5.5|GPT-5.5|1050k|128k|tir/nlmhx|5,30,0.5|272k:10,45,1
openai/gpt-5.6-luna-pro|GPT-5.6 Luna Pro|1050k|128k|tir/nlmhxM|0.2,1.2,0.02,0.25|272k:0.4,1.8,0.04,0.5
openai/gpt-5.6-luna|GPT-5.6 Luna|1050k|128k|tir/nlmhxM|0.2,1.2,0.02,0.25|272k:0.4,1.8,0.04,0.5
openai/gpt-5.6-sol-pro|GPT-5.6 Sol Pro|1050k|128k|tir/nlmhxM|4,20,0.4,5|272k:8,30,0.8,10
openai/gpt-5.6-sol|GPT-5.6 Sol|1050k|128k|tir/nlmhxM|4,20,0.4,5|272k:8,30,0.8,10
openai/gpt-5.6-terra-pro|GPT-5.6 Terra Pro|1050k|128k|tir/nlmhxM|2,12,0.2,2.5|272k:4,18,0.4,5
openai/gpt-5.6-terra|GPT-5.6 Terra|1050k|128k|tir/nlmhxM|2,12,0.2,2.5|272k:4,18,0.4,5
openai/gpt-5|GPT-5|400k|128k|tir/ulmh|1.25,10,0.125
openai/gpt-6-astra-pro|GPT-6 Astra Pro|1050k|128k|tir/lmhxM|10,50,1,12.5|272k:20,75,2,25
openai/gpt-6-astra|GPT-6 Astra|1050k|128k|tir/lmhxM|10,50,1,12.5|272k:20,75,2,25
openai/gpt-6-luna-pro|GPT-6 Luna Pro|1050k|128k|tir/nlmhxM|0.1,0.5,0.01,0.125|272k:0.2,0.75,0.02,0.25
openai/gpt-6-luna|GPT-6 Luna|1050k|128k|tir/nlmhxM|0.1,0.5,0.01,0.125|272k:0.2,0.75,0.02,0.25
openai/gpt-6-sol-pro|GPT-6 Sol Pro|1050k|128k|tir/nlmhxM|2,10,0.2,2.5|272k:4,15,0.4,5
openai/gpt-6-sol|GPT-6 Sol|1050k|128k|tir/nlmhxM|2,10,0.2,2.5|272k:4,15,0.4,5
openai/gpt-6.1-sol-pro|GPT-6.1 Sol Pro|1050k|128k|tir/lmhxM|2,10,0.1,2.5|272k:4,15,0.2,5
openai/gpt-6.1-sol|GPT-6.1 Sol|1050k|128k|tir/lmhxM|2,10,0.1,2.5|272k:4,15,0.2,5
openai/gpt-6.1-terra-pro|GPT-6.1 Terra Pro|1050k|128k|tir/lmhxM|1,5,0.05,1.25|272k:2,7.5,0.1,2.5
openai/gpt-6.1-terra|GPT-6.1 Terra|1050k|128k|tir/nlmhxM|1,5,0.05,1.25|272k:2,7.5,0.1,2.5
openai/gpt-chat-latest|GPT Chat Latest|400k|128k|ti|5,30,0.5
openai/gpt-oss-120b||128K|64K|tr/lmh|0.15,0.6,0.075
openai/gpt-oss-20b||128K||tr/lmh|0.03,0.13,0.03
openai/o3-pro|o3 Pro|200k|100k|tir/lmh|20,80
openai/o3||200k|100k|tir/lmh|2,8,0.5
openrouter/auto-beta|Auto Router (Beta)|2000k|64K|tir
openrouter/auto|Auto Router|2000k||tir
openrouter/free|Free Models Router|200k||tir
openrouter/fusion|Fusion|1000k|30k|tr
openrouter/pareto-code|Pareto Code Router|2000k||tr
particle-ai/particle-1|Particle-1|1024K|128K|tir/nulmhxM|0.05,0.5,0.003
perceptron/perceptron-mk1.5|Perceptron Mk1.5|36K|8K|tir/nulmh|0.15,1.5
prism-ml/ternary-bonsai-2-27b|Ternary Bonsai 2 27B|256K|32K|tir/nmx|0.075,0.5,0.0375
prism-ml/ternary-bonsai-2-9b|Ternary Bonsai 2 9B|256K|64K|tir|0.08,0.13,0.04
qwen/qwen-2.5-72b-instruct|Qwen2.5 72B Instruct|32K|16K|t|0.36,0.4
qwen/qwen-2.5-7b-instruct|Qwen2.5 7B Instruct|32K||t|0.1,0.2
qwen/qwen-plus|Qwen-Plus|1000k|32K|t|0.26,0.78,0.052,0.325|256k:0.78,2.34,0.156,0.975
qwen/qwen3-14b|Qwen3 14B|40K|16K|tr|0.12,0.24
qwen/qwen3-235b-a22b-2507|Qwen3 235B A22B Instruct 2507|256K|16K|t|0.09,0.55
qwen/qwen3-235b-a22b-thinking-2507|Qwen3 235B A22B Thinking 2507|128k|16K|tr/lmh|0.45,3.5
qwen/qwen3-30b-a3b-instruct-2507|Qwen3 30B A3B Instruct 2507|256K||t|0.1,0.3,0.1
qwen/qwen3-30b-a3b|Qwen3 30B A3B|40K|16K|tr|0.12,0.5
qwen/qwen3-32b|Qwen3 32B|40K|16K|tr|0.08,0.28
qwen/qwen3-coder-30b-a3b-instruct|Qwen3 Coder 30B A3B Instruct|256K||t|0.07,0.28
qwen/qwen3-coder-flash|Qwen3 Coder Flash|1000k|64K|t|0.195,0.975,0.039,0.24375|32k:0.325,1.625,0.065,0.40625|128k:0.52,2.6,0.104,0.65
qwen/qwen3-coder-next|Qwen3 Coder Next|256K||t|0.12,0.8,0.07
qwen/qwen3-coder|Qwen3 Coder 480B A35B|256K|64K|t|0.3,1,0.1
qwen/qwen3-next-80b-a3b-instruct|Qwen3 Next 80B A3B Instruct|256K|16K|t|0.09,1.1
qwen/qwen3-vl-235b-a22b-instruct|Qwen3 VL 235B A22B Instruct|128K|32K|ti|0.21,1.9,0.1
qwen/qwen3-vl-30b-a3b-instruct|Qwen3 VL 30B A3B Instruct|256K|16K|ti|0.15,0.6
qwen/qwen3-vl-30b-a3b-thinking|Qwen3 VL 30B A3B Thinking|256K||tir/lmh|0.29,1
qwen/qwen3-vl-8b-instruct|Qwen3 VL 8B Instruct|256K||ti|0.25,0.75,0.12
qwen/qwen3.5-122b-a10b|Qwen3.5-122B-A10B|256K|64K|tir|0.26,2.08
qwen/qwen3.5-27b|Qwen3.5-27B|256K|80K|tir|0.26,2.6
qwen/qwen3.5-35b-a3b|Qwen3.5-35B-A3B|256K|80K|tir|0.14,1,0.05
qwen/qwen3.5-397b-a17b|Qwen3.5 397B A17B|256K||tir|0.5,3.6,0.3
qwen/qwen3.5-9b|Qwen3.5-9B|256K||tir|0.17,0.25
qwen/qwen3.5-flash-02-23|Qwen3.5-Flash|1000k|64K|tir|0.065,0.26
qwen/qwen3.5-plus-02-15|Qwen3.5 Plus 2026-02-15|1000k|64K|tir|0.26,1.56|256k:0.325,1.95
qwen/qwen3.5-plus-20260420|Qwen3.5 Plus 2026-04-20|1000k|64K|tir|0.3,1.8,,0.375|256k:0.375,2.25,,0.46875
qwen/qwen3.6-27b|Qwen3.6 27B|256K|64K|tir|0.45,2.7
qwen/qwen3.6-35b-a3b|Qwen3.6 35B A3B|256K||tir|0.1,0.9,0.025
qwen/qwen3.6-flash|Qwen3.6 Flash|1000k|64K|tir|0.1875,1.125,,0.234375|256k:0.75,3,,0.9375
qwen/qwen3.6-plus|Qwen3.6 Plus|1000k|64K|tir|0.325,1.95,,0.40625|256k:1.3,3.9,,1.625
qwen/qwen3.7-flash|Qwen3.7 Flash|1000k|64K|tir|0.03,0.13,0.006,0.038|32k:0.1,0.4,0.02,0.125|256k:0.2,0.8,0.04,0.25
qwen/qwen3.7-max|Qwen3.7 Max|1000k|128K|tr|1.475,4.425,0.295,1.84375
qwen/qwen3.7-plus|Qwen3.7 Plus|1000k|128K|tir|0.32,1.28,0.064,0.4|256k:0.96,3.84,0.192,1.2
qwen/qwen3.8-2.4t-a95b|Qwen3.8 2.4T A95B|1000k|128K|tr/lmx|2,6,0.25
qwen/qwen3.8-27b|Qwen3.8 27B|256K||tir/nlmx|0.15,1.875,0.0375
qwen/qwen3.8-flash|Qwen3.8 Flash|1000k|128K|tir|0.15,0.47,0.016
qwen/qwen3.8-max-0902|Qwen3.8 Max (0902)|1000k|128K|tir/ulmhx|2,6,0.25
qwen/qwen3.8-max-prime|Qwen3.8 Max Prime|1000k|128K|tir/ulmhx|4,12,0.5
qwen/qwen3.8-omni-flash|Qwen3.8 Omni Flash|1000k|128K|tir|0.15,0.47,0.016
recursive/flint-v1.0:free|Flint (free)|256K||tr/lmh|0,0,0,0
reflection/beam-1.0-501b-a23b|Beam 1.0 501B A23B|1024K|128K|tr/lmhxM|0.25,1,0.05
rekaai/reka-edge|Reka Edge|16K||ti|0.1,0.1
relace/relace-search|Relace Search|256k|128k|t|1,3
sakana/fugu-max|Fugu Max|1000k|128k|tir/hxM|2,6,0.25
sakana/fugu-ultra-v2|Fugu Ultra v2|1000k|128k|tir/hxM|5,30,0.5|272k:10,45,1
sakana/fugu-ultra|Fugu Ultra|1000k|128k|tir/hxM|5,30,0.5|272k:10,45,1
sakana/sakana-namazu|Sakana Namazu|256K|64K|tir/nh|0.95,4,0.15
stepfun/step-3.5-flash|Step 3.5 Flash|256K|64K|tr/lmh|0.1,0.3
stepfun/step-3.7-flash|Step 3.7 Flash|256k||tir/lmh|0.2,1.15,0.04
stepfun/step-5-preview|Step 5 Preview|1000k|64k|tir/lmh|1,2.7,0.1
tencent/hy3-preview|Hy3 preview|256K||tr/nlh|0.18,0.6,0.06
tencent/hy3|Hy3|256K|128k|tr/nlh|0.132,0.528,0.033
tencent/hy4-preview|Hy4 preview|1024K|64k|tr/nlh|0.834,2.501,0.042
thinkingmachines/inkling-small:free|Inkling Small (free)|1024K|256K|tir/nulmhM|0,0,0,0
thinkingmachines/inkling-small|Inkling Small|512K|256K|tir/nulmhM|0.45,1.2,0.1
thinkingmachines/inkling:free|Inkling (free)|1024K|256K|tir/nulmhM|0,0,0,0
thinkingmachines/inkling|Inkling|512K||tir/nulmhM|1,4.05,0.17
typesafe/jev-router|Jev Router|1000k|64K|tir
unbiased/pareto-26.10|Pareto 26.10|1024K|128K|ti|0.8,3.2,0.03
unbiased/pareto-26.9|Pareto 26.9|256K|128K|ti|2.5,7.5,0.25
upstage/solar-mini4|Solar Mini 4|512K|128K|tr/nulmhxM|0.05,0.2,0.005
upstage/solar-pro4|Solar Pro 4|512K|128K|tr/nulmhxM|0.15,0.6,0.03
x-ai/grok-4.20|Grok 4.20|2000k||tir|1.25,2.5,0.2|200k:2.5,5,0.4
x-ai/grok-4.3|Grok 4.3|1000k|30k|tir/nlmh|1.25,2.5,0.2|200k:2.5,5,0.4
x-ai/grok-4.5|Grok 4.5|500k|500k|tir/lmh|2,6,0.3|200k:4,12,0.6
x-ai/grok-4.6|Grok 4.6|500k|500k|tir/lmhx|2,6,0.5|200k:4,12,1
x-ai/grok-4.7|Grok 4.7|500k|500k|tir/lmhx|2,6,0.5|200k:4,12,1
x-ai/grok-build-0.1|Grok Build 0.1|256k||tir/lmh|1,2,0.2|200k:2,4,0.4
xiaomi/mimo-v2.5-pro|MiMo-V2.5-Pro|256K||tr|0.48,1.8,0.096
xiaomi/mimo-v2.5|MiMo-V2.5|1000k|64K|tir|0.4,2,0.08
xiaomi/mimo-v2.6-flash|MiMo-V2.6-Flash|1024K|128K|tir|0.14,0.28,0.0028
xiaomi/mimo-v2.6-pro-ultraspeed|MiMo-V2.6-Pro-UltraSpeed|1024K|128K|tir|4.35,8.7,0.036
xiaomi/mimo-v2.6-pro|MiMo-V2.6-Pro|1024K|128K|tir|0.435,0.87,0.0036
xingchen-agi/xing4.0-29b-a4b:free|Xing4.0 29B A4B (free)|256K||tr|0,0,0,0
z-ai/glm-4.5-air|GLM 4.5 Air|128K|96K|tr|0.13,0.85,0.025
z-ai/glm-4.5v|GLM 4.5V|64K|16K|tir|0.6,1.8,0.11
z-ai/glm-4.5|GLM 4.5|128K|96K|tr|0.6,2.2,0.11
z-ai/glm-4.6v|GLM 4.6V|128K|32K|tir|0.3,0.9,0.055
z-ai/glm-4.6|GLM 4.6|198K|128K|tr|0.5,2,0.1
z-ai/glm-4.7-flash|GLM 4.7 Flash|128K||tr|0.0605,0.4
z-ai/glm-4.7|GLM 4.7|198K|128K|tr|0.6,2.2,0.11
z-ai/glm-5-turbo|GLM 5 Turbo|198K|128K|tr|1.2,4,0.24
z-ai/glm-5.1|GLM 5.1|198K|128K|tr|1.4,4.4,0.26
z-ai/glm-5.2|GLM 5.2|1024K|128K|tr/nhx|0.006,6.8,0.005
z-ai/glm-5.3-flashx|GLM 5.3 FlashX|1024K|128K|tir/lhM|0.37,1.25,0.09
z-ai/glm-5.3-flash|GLM 5.3 Flash|1024K|128K|tir/lhM|0.0285,0.0923,0.0285
z-ai/glm-5.3-prime|GLM 5.3 Prime|1000k|128K|tr/lhM|2.8,8.8,0.56
z-ai/glm-5.3|GLM 5.3|1024K|128K|tr/lhM|0.08,3.6,0.076
z-ai/glm-5v-turbo|GLM 5V Turbo|198K|128K|tir|1.2,4,0.24
z-ai/glm-5|GLM 5|198K|128K|tr|0.6,1.9,0.119
@perplexity|openai-completions
sonar-deep-research|Sonar Deep Research|128k
sonar-pro|Sonar Pro|200k
sonar-reasoning-pro|Sonar Reasoning Pro|128k
sonar-reasoning|Sonar Reasoning
sonar|Sonar|128k`;
