import { describe, expect, it } from "vitest";
import type { FailureKind } from "../../messages/messages.ts";
import { explainErrorEvent, explainErrorResponse } from "./response-error.ts";

// What services send, word for word (names and keys changed), and where it was seen.

interface Case {
  from: string;
  status: number;
  body: unknown;
  kind: FailureKind;
  retryable: boolean;
  seen: string;
}

const TOO_LONG = { kind: "overflow", retryable: false } as const;
const NO_CREDIT = { kind: "quota", retryable: false } as const;

const CASES: readonly Case[] = [
  // The conversation is too long.
  {
    from: "Anthropic",
    status: 413,
    body: {
      type: "error",
      error: { type: "request_too_large", message: "Request exceeds the maximum size" },
    },
    ...TOO_LONG,
    seen: "https://platform.claude.com/docs/en/api/errors",
  },
  {
    from: "a proxy with nginx",
    status: 413,
    body: "<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n<body></body></html>",
    ...TOO_LONG,
    seen: "https://nginx.org/en/docs/http/ngx_http_core_module.html#client_max_body_size",
  },
  { from: "any service", status: 413, body: "", ...TOO_LONG, seen: "RFC 9110, 15.5.14" },
  {
    from: "Groq",
    status: 413,
    body: {
      error: {
        message:
          "Request too large for model `llama` on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size and try again.",
        type: "tokens",
        code: "rate_limit_exceeded",
      },
    },
    ...TOO_LONG,
    seen: "https://console.groq.com/docs/errors",
  },
  {
    from: "Cerebras",
    status: 400,
    body: "",
    ...TOO_LONG,
    seen: "error tables of several open-source clients",
  },
  {
    from: "Cerebras",
    status: 400,
    body: {
      message:
        "Please reduce the length of the messages or completion. Current length is 131269 while limit is 131072",
      type: "invalid_request_error",
      param: "messages",
      code: "context_length_exceeded",
    },
    ...TOO_LONG,
    seen: "https://inference-docs.cerebras.ai/support/error",
  },
  {
    from: "a proxy that passes its message on",
    status: 400,
    body: { error: { message: "Current length is 131269 while limit is 131072" } },
    ...TOO_LONG,
    seen: "https://inference-docs.cerebras.ai/support/error",
  },
  {
    from: "DS4",
    status: 400,
    body: {
      error: { message: "Prompt has 9021 tokens, but the configured context size is 8192 tokens" },
    },
    ...TOO_LONG,
    seen: "error tables of several open-source clients",
  },
  {
    from: "SiliconFlow",
    status: 400,
    body: {
      code: 20015,
      message: "length of prompt_tokens (57535) must be less than max_seq_len (32768)",
      data: null,
    },
    ...TOO_LONG,
    seen: "https://github.com/langgenius/dify/issues/19394",
  },
  {
    from: "Zhipu",
    status: 400,
    body: { error: { code: "1261", message: "Prompt 超长" } },
    ...TOO_LONG,
    seen: "https://docs.bigmodel.cn/cn/faq/api-code",
  },
  {
    from: "Z.ai",
    status: 400,
    body: { error: { code: "1261", message: "Prompt exceeds max length" } },
    ...TOO_LONG,
    seen: "https://github.com/farion1231/cc-switch/issues/6982",
  },
  {
    from: "a gateway",
    status: 400,
    body: { error: { message: "Token limit exceeded" } },
    ...TOO_LONG,
    seen: "error tables of several open-source clients",
  },
  {
    from: "Text Generation Inference",
    status: 422,
    body: {
      error: "Input validation error: `inputs` must have less than 4096 tokens. Given: 5200",
      error_type: "validation",
    },
    ...TOO_LONG,
    seen: "https://github.com/huggingface/text-generation-inference, router/src/validation.rs",
  },
  {
    from: "Kimi",
    status: 400,
    body: {
      error: {
        message: "total message size 2100954 exceeds limit 2097152",
        type: "invalid_request_error",
      },
    },
    ...TOO_LONG,
    seen: "https://github.com/MoonshotAI/kimi-code/issues/1862",
  },
  {
    from: "Moonshot",
    status: 400,
    body: {
      error: {
        message:
          "Invalid request: Your request exceeded model token limit: 262144 (requested: 287431)",
        type: "invalid_request_error",
      },
    },
    ...TOO_LONG,
    seen: "https://github.com/BigPizzaV3/CodexPlusPlus/issues/1803",
  },
  {
    from: "DS4",
    status: 400,
    body: {
      error: {
        message: "Prompt tokens (9000) exceeds context size (8192)",
        type: "context_exceeded",
      },
    },
    ...TOO_LONG,
    seen: "https://github.com/antirez/ds4/pull/150",
  },
  // Close to one of those, and something else.
  {
    from: "any service",
    status: 400,
    body: "",
    kind: "bad_request",
    retryable: false,
    seen: "beside the empty answer of Cerebras",
  },
  {
    from: "OpenAI",
    status: 400,
    body: {
      error: {
        message:
          "max_tokens is too large: 100000. This model supports at most 16384 completion tokens.",
        type: "invalid_request_error",
        param: "max_tokens",
        code: "invalid_value",
      },
    },
    kind: "bad_request",
    retryable: false,
    seen: "the usual words of that service",
  },

  // The account has no credit.
  {
    from: "Zhipu",
    status: 429,
    body: { error: { code: "1113", message: "余额不足或无可用资源包,请充值。" } },
    ...NO_CREDIT,
    seen: "https://github.com/continuedev/continue/issues/11823",
  },
  {
    from: "Zhipu",
    status: 429,
    body: { error: { code: "1113", message: "您的账户已欠费，请充值后重试。" } },
    ...NO_CREDIT,
    seen: "https://github.com/langgenius/dify/issues/5850",
  },
  {
    from: "Z.ai",
    status: 429,
    body: {
      error: {
        code: "1113",
        message: "Insufficient balance or no resource package. Please recharge.",
      },
    },
    ...NO_CREDIT,
    seen: "https://github.com/zai-org/GLM-5/issues/148",
  },
  {
    from: "Moonshot",
    status: 429,
    body: {
      error: {
        message:
          "Your account org-1 <ak-1> is suspended due to insufficient balance, please recharge your account or check your plan and billing details",
        type: "exceeded_current_quota_error",
      },
    },
    ...NO_CREDIT,
    seen: "https://github.com/anomalyco/opencode/issues/24462",
  },
  {
    from: "Moonshot",
    status: 429,
    body: {
      error: {
        message: "Your account is suspended, please check your plan and billing details",
        type: "rate_limit_reached_error",
      },
    },
    ...NO_CREDIT,
    seen: "beside https://github.com/anomalyco/opencode/issues/24462",
  },
  {
    from: "Moonshot",
    status: 403,
    body: {
      error: {
        message:
          "Your account org-1 is not active, organization <org-1> exceeded current quota, please check your plan and billing details",
        type: "exceeded_current_quota_error",
      },
    },
    ...NO_CREDIT,
    seen: "https://github.com/MoonshotAI/Kimi-K2/issues/5",
  },
  {
    from: "Ollama",
    status: 429,
    body: {
      error:
        "you (name) have reached your session usage limit, upgrade for higher limits: https://ollama.com/upgrade",
    },
    ...NO_CREDIT,
    seen: "https://github.com/continuedev/continue/issues/11444",
  },
  {
    from: "Ollama",
    status: 429,
    body: { error: "you've reached your weekly usage limit, please wait or upgrade to continue" },
    ...NO_CREDIT,
    seen: "https://github.com/HomericIntelligence/Scylla/issues/346",
  },
  {
    from: "Ollama",
    status: 403,
    body: {
      error: {
        message:
          "your subscription payment is past due. update your payment method: https://ollama.com/settings/billing (ref: 1)",
        type: "api_error",
        param: null,
        code: null,
      },
    },
    ...NO_CREDIT,
    seen: "https://github.com/continuedev/continue/issues/13195",
  },
  {
    from: "Chutes",
    status: 429,
    body: { detail: "Quota exceeded and account balance is $0.0, please pay with fiat." },
    ...NO_CREDIT,
    seen: "https://github.com/DaWe35/image-router/issues/33",
  },
  {
    from: "a gateway",
    status: 429,
    body: { error: { message: "Quota exceeded", code: 429 } },
    ...NO_CREDIT,
    seen: "error tables of several open-source clients",
  },
  {
    from: "Google",
    status: 429,
    body: {
      error: {
        code: 429,
        status: "RESOURCE_EXHAUSTED",
        message:
          "Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 0, model: gemini-3.1-pro\nPlease retry in 56.42777108s.",
        details: [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "56s" }],
      },
    },
    ...NO_CREDIT,
    seen: "https://github.com/google-gemini/gemini-cli/issues/22486",
  },
  {
    from: "xAI",
    status: 403,
    body: {
      code: "The caller does not have permission to execute the specified operation",
      error:
        "Your newly created team doesn't have any credits or licenses yet. You can purchase those on https://console.x.ai/team/1.",
    },
    ...NO_CREDIT,
    seen: "https://github.com/continuedev/continue/issues/12670",
  },
  {
    from: "xAI",
    status: 403,
    body: {
      code: "permission-denied",
      error:
        "Your team 1 has either used all available credits or reached its monthly spending limit.",
    },
    ...NO_CREDIT,
    seen: "https://github.com/NousResearch/hermes-agent/issues/26847",
  },
  {
    from: "DashScope",
    status: 403,
    body: {
      error: {
        message:
          'The free tier of the model has been exhausted. If you wish to continue access the model on a paid basis, please disable the "use free tier only" mode in the management console.',
        type: "AllocationQuota.FreeTierOnly",
        param: null,
        code: "AllocationQuota.FreeTierOnly",
      },
    },
    ...NO_CREDIT,
    seen: "https://github.com/666ghj/BettaFish/issues/609",
  },
  {
    from: "SiliconFlow",
    status: 403,
    body: {
      code: 30011,
      message:
        "The selected model requires paid balance. Your paid balance is insufficient. Please top up and try again.",
      data: null,
    },
    ...NO_CREDIT,
    seen: "https://github.com/FoundationAgents/OpenManus/issues/438",
  },
  {
    from: "Ollama",
    status: 403,
    body: {
      error: "this model requires a subscription, upgrade for access: https://ollama.com/upgrade",
    },
    ...NO_CREDIT,
    seen: "https://github.com/ollama/ollama/issues/15990",
  },
  // Close to one of those, and a limit that passes.
  {
    from: "Google",
    status: 429,
    body: {
      error: {
        code: 429,
        status: "RESOURCE_EXHAUSTED",
        message:
          "Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_requests, limit: 10, model: gemini-3.1-pro\nPlease retry in 6.4s.",
      },
    },
    kind: "rate_limit",
    retryable: true,
    seen: "https://ai.google.dev/gemini-api/docs/rate-limits",
  },
  {
    from: "Zhipu",
    status: 429,
    body: { error: { code: "1302", message: "您的账户已达到速率限制，请您控制请求频率" } },
    kind: "rate_limit",
    retryable: true,
    seen: "https://docs.bigmodel.cn/cn/faq/api-code",
  },

  // The content is refused.
  {
    from: "Zhipu",
    status: 400,
    body: {
      contentFilter: [{ level: 1, role: "user" }],
      error: {
        code: "1301",
        message:
          "系统检测到输入或生成内容可能包含不安全或敏感内容，请您避免输入易产生敏感内容的提示语，感谢您的配合。",
      },
    },
    kind: "refused",
    retryable: false,
    seen: "https://github.com/langchain4j/langchain4j/issues/1079",
  },
  {
    from: "Z.ai",
    status: 400,
    body: {
      error: {
        code: "1301",
        message: "System detected potentially unsafe or sensitive content in input or generation.",
      },
    },
    kind: "refused",
    retryable: false,
    seen: "https://docs.z.ai/api-reference/api-code",
  },
];

describe("what services say", () => {
  it.each(
    CASES.map(
      (each) =>
        [`${each.from}, ${each.status}: ${JSON.stringify(each.body)}`.slice(0, 120), each] as const,
    ),
  )("%s", (_, each) => {
    const { from, status, body, kind, retryable } = each;
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const headers = new Headers(text.startsWith("<") ? { "content-type": "text/html" } : {});
    const url = "https://api.acme.test/v1/chat";
    const at = { service: from, model: "acme-large-2", now: 0 };
    const { failure } = explainErrorResponse({ status, headers, body: text, url }, at);
    expect(failure).toMatchObject({ kind, retryable, status });
  });

  it.each(
    CASES.filter(
      ({ kind, body }) => kind === "overflow" && body !== "" && typeof body === "object",
    ).map((each) => [JSON.stringify(each.body).slice(0, 120), each] as const),
  )("an event in a response: %s", (_, { body, from, status }) => {
    if (status === 413) return;
    const at = { service: from, model: "acme-large-2", now: 0 };
    expect(explainErrorEvent(body, at).failure.kind).toBe("overflow");
  });
});
