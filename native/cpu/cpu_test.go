package cpu_test

import (
	"testing"

	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/cpu"
)

func TestBackend(t *testing.T) { backendtest.Run(t, cpu.Backend()) }
