/** What is used of DBOS, which users install themselves. */
declare module "@dbos-inc/dbos-sdk" {
  export interface Logger {
    info(entry: unknown): void;
    debug(entry: unknown): void;
    warn(entry: unknown): void;
    error(entry: unknown): void;
  }
  export const DBOS: {
    readonly workflowID: string | undefined;
    isInitialized(): boolean;
    setConfig(config: {
      name: string;
      systemDatabaseUrl: string;
      systemDatabaseSchemaName?: string;
      applicationVersion: string;
      executorID: string;
      listenQueues: string[];
      logger: Logger;
      runMigrations: boolean;
    }): void;
    migrate(url: string, options?: { schemaName?: string }): Promise<void>;
    launch(): Promise<void>;
    shutdown(options?: { workflowCompletionTimeoutMS?: number }): Promise<void>;
    registerWorkflow<Args extends unknown[]>(
      workflow: (...args: Args) => Promise<void>,
      config: { name: string; maxRecoveryAttempts?: number },
    ): (...args: Args) => Promise<void>;
  };
  export class DBOSClient {
    static create(options: {
      systemDatabaseUrl: string;
      systemDatabaseSchemaName?: string;
      applicationName: string;
      logger: Logger;
    }): Promise<DBOSClient>;
    destroy(): Promise<void>;
    enqueue(
      options: {
        queueName: string;
        workflowName: string;
        workflowID?: string;
        appVersion: string;
        priority: number;
        delaySeconds?: number;
      },
      ...args: unknown[]
    ): Promise<unknown>;
    registerQueue(
      name: string,
      options: { workerConcurrency: number; minPollingIntervalMs: number },
    ): Promise<unknown>;
  }
}
