/** What tests use of `croner`, which the times of cron expressions are compared with. */
declare module "croner" {
  export class Cron {
    constructor(pattern: string, options: { timezone: string; paused: true });
    nextRun(after: Date): Date | null;
    match(time: Date): boolean;
  }
}
