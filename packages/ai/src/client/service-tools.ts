/**
 * A tool that the model's service runs by itself while it answers. What it did comes back as
 * `serviceTool` blocks and as `citations` of texts, which `@gyre/ai/service-tools` reads. No service
 * has all of these: a tool, or a field of one, that the service does not have ends the response with
 * an error that names it, before the request is sent. Tools of one service alone are in its
 * `providerOptions`.
 */
export type ServiceTool =
  | WebSearchTool
  | WebFetchTool
  | CodeExecutionTool
  | FileSearchTool
  | ImageGenerationTool
  | McpConnectorTool;

/** Searches the web. */
export interface WebSearchTool {
  type: "webSearch";
  /** How often in one response. */
  maxUses?: number;
  /** Results only from these, such as `example.org`. */
  allowedDomains?: readonly string[];
  /** No results from these. */
  blockedDomains?: readonly string[];
  /** Where the user is, for results that depend on it. */
  location?: SearchLocation;
}

/** Where a user is, about. */
export interface SearchLocation {
  city?: string;
  region?: string;
  /** Two letters: `NL`. */
  country?: string;
  /** A name of the IANA: `Europe/Amsterdam`. */
  timezone?: string;
}

/** Reads pages whose addresses are in the conversation. */
export interface WebFetchTool {
  type: "webFetch";
  /** How often in one response. */
  maxUses?: number;
  allowedDomains?: readonly string[];
  blockedDomains?: readonly string[];
  /** How much of a page the model reads. */
  maxContentTokens?: number;
  /** Whether texts cite passages of the page. */
  citations?: boolean;
}

/** Runs code in a container of the service. */
export interface CodeExecutionTool {
  type: "codeExecution";
  /** Ids of files at the service that the code can read. */
  files?: readonly string[];
}

/** Searches files that were uploaded to the service before. */
export interface FileSearchTool {
  type: "fileSearch";
  /** Ids or names of the stores that have the files. */
  stores: readonly string[];
  maxResults?: number;
}

/** Makes images, which `readServiceTool` of `@gyre/ai/service-tools` reads from their blocks. */
export interface ImageGenerationTool {
  type: "imageGeneration";
  /** Such as `1024x1024`. */
  size?: string;
  quality?: "low" | "medium" | "high";
  format?: "png" | "webp" | "jpeg";
  background?: "transparent" | "opaque";
}

/** The tools of an MCP server, which the service calls by itself and without a question. */
export interface McpConnectorTool {
  type: "mcp";
  /** A name for it, of letters, digits, `_` and `-`. */
  name: string;
  /** With `https:`. */
  url: string;
  /** A token for the server. It is part of the request, and of no message. */
  authorization?: string;
  /** Only these of its tools. Absent: all. */
  allowedTools?: readonly string[];
}

/** Tools of Anthropic alone. */
export type AnthropicServiceTool =
  | {
      /**
       * A screen that the model sees and controls. Calls come as calls of the tool `computer` of the
       * application, which runs them.
       */
      type: "computer";
      width: number;
      height: number;
      displayNumber?: number;
      /** Which version of the tool the model knows. Default `20251124`. */
      version?: "20250124" | "20251124";
    }
  | {
      /** Finds tools of the application among many, by a pattern or by words. */
      type: "toolSearch";
      by: "regex" | "bm25";
    };

/** Tools of OpenAI alone. */
export interface OpenAIServiceTool {
  /**
   * A screen that the model sees and controls. Calls come as calls of the tool `computer` of the
   * application, which runs them: `actions` in their order, and `pending_safety_checks` that a person
   * has to approve. Its result is a screenshot.
   */
  type: "computer";
  /** The form that the model `computer-use-preview` knows. Default: that of the models since `gpt-5.4`. */
  preview?: {
    width: number;
    height: number;
    environment: "browser" | "windows" | "mac" | "linux" | "ubuntu";
  };
}

/** Tools of xAI alone. */
export interface XaiServiceTool {
  /** Searches posts, people and threads of X. */
  type: "xSearch";
  /** Posts only of these, such as `nasa`. At most 20, and not beside `excludedHandles`. */
  allowedHandles?: readonly string[];
  /** No posts of these. At most 20. */
  excludedHandles?: readonly string[];
  /** The first day, `2026-01-31`. */
  from?: string;
  /** The last day. */
  to?: string;
  /** Whether it looks at pictures of posts. */
  images?: boolean;
  /** Whether it looks at videos of posts. */
  videos?: boolean;
}

/** Tools of Gemini alone. */
export type GoogleServiceTool =
  | {
      /** Finds places. */
      type: "googleMaps";
    }
  | {
      /**
       * A browser that the model sees and controls. Calls come as calls of tools of the application
       * with the names that Google documents, such as `click_at`, which runs them.
       */
      type: "computer";
      /** Actions that the model does not have. */
      excluded?: readonly string[];
    };
