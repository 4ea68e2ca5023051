// Command gen writes the TypeScript methods of all ops from their definitions:
//
//	go run ./wasm/gen js/src/graph/ops.gen.ts
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gen file.ts")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(generate()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}
