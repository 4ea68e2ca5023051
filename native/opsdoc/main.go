// Command opsdoc writes the table of all ops: their meaning, their rules, and their support by each
// backend.
//
//	go run ./native/opsdoc ir/ops/OPS.md
package main

import (
	"fmt"
	"os"
)

//go:generate go run . ../../ir/ops/OPS.md

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: opsdoc file.md")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(table()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "opsdoc:", err)
		os.Exit(1)
	}
}
