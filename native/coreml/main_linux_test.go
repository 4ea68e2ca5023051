//go:build cgo

package coreml_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/internal/coreml/driver"
	"github.com/rlx-go/rlx/internal/coreml/software"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/coreml"
)

var library string

// alive is how many of Core ML's objects there are.
func alive() int { return software.Alive(library) }

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run makes the tests use the Core ML in software, and before that checks the error
// without it.
func run(m *testing.M) int {
	if err := rlx.Available(coreml.Name); !errors.Is(err, native.ErrUnavailable) {
		fmt.Fprintln(os.Stderr, "without a library there is a Core ML:", err)
		return 1
	}
	dir, err := os.MkdirTemp("", "rlx-software-coreml-*")
	if err == nil {
		defer os.RemoveAll(dir)
		err = os.Setenv(driver.CacheVariable, filepath.Join(dir, "cache"))
	}
	if err == nil {
		library, err = software.Install(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the Core ML in software cannot be built:", err)
		return 1
	}
	return m.Run()
}
