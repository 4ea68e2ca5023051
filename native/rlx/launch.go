package main

import (
	"context"
	"flag"

	"github.com/rlx-go/rlx/native/collective/launch"
)

// maxProcesses is the maximum of -n: more are a slip of the keyboard, and would exhaust the machine.
const maxProcesses = 4096

var launchCommand = command{
	name: "launch", args: "-- PROGRAM [ARGUMENT...]", short: "run a program as several processes that train together",
	long: `Runs a program as several processes of this machine, the ranks of one run (rlx.DataParallel). Each
line that they write comes after the number of its rank. If one fails, the others have ten seconds
to end.`,
	define: func(f *flag.FlagSet) runner {
		n := f.Int("n", 1, "number of processes")
		return func(ctx context.Context, std stdio, args []string) error {
			if len(args) == 0 || *n < 1 || *n > maxProcesses {
				return usagef("launch needs a program, and from 1 to %d processes", maxProcesses)
			}
			return launch.Start(ctx, *n, args, std.out, std.err)
		}
	},
}
