package wgsl_test

import (
	"os"
	"testing"
)

// TestMain has Mesa's software GPU compile shaders without LLVM's optimisation, which takes longer than the few runs of a
// kernel. The driver, here or in a process of Node, reads the variable when it is loaded.
func TestMain(m *testing.M) {
	if err := os.Setenv("GALLIVM_PERF", "nopt"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
