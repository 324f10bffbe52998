import type { Clock, Model, TokenCalibration, Tool } from "@gyre/ai";
import type { AgentEvent, AgentLoopConfig, AgentMessage, AgentTool } from "../contract/types.ts";

/** What the compaction of a context needs of the run whose context it is. */
export interface ContextHost {
  readonly config: Pick<AgentLoopConfig, "context">;
  readonly clock: Clock;
  readonly history: { readonly messages: readonly AgentMessage[] };
  /** The model in use. */
  readonly model: Model;
  readonly systemPrompt: string | undefined;
  readonly toolbox: {
    readonly specs: readonly Tool[];
    readonly byName: ReadonlyMap<string, AgentTool>;
  };
  /** How the service of the model in use counts tokens. */
  readonly calibration: TokenCalibration;
  /** Turns that the run has begun. */
  readonly turns: number;
  /** Why the run was canceled, if it was. */
  readonly canceled: string | undefined;
  /** Fires when the run is canceled. */
  readonly signal: AbortSignal;
  emit(event: AgentEvent): void | Promise<void>;
  readonly hooks: {
    /** Calls a callback of the application within its deadline; throws when the run is canceled. */
    call<T>(name: string, callback: () => T | Promise<T>): T | Promise<T>;
    /** Resolves to false when the run is canceled, or when what `giveCut` received is called. */
    wait(ms: number, giveCut?: (cut: () => void) => void): Promise<boolean>;
  };
}
