import type { Reporter, TestModule } from "vitest/node";

/** Prints the tests that failed and passed when they were run again: each is a defect to look for. */
export class UnsteadyReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests("passed")]);
    for (const test of tests.filter((each) => each.diagnostic()?.flaky)) {
      const [error] = test.result().errors ?? [];
      console.log(`unsteady: ${test.module.relativeModuleId} > ${test.fullName}`);
      if (error) console.log(`  at first: ${error.message}`);
    }
  }
}
