package cpu_test

import (
	"testing"

	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/cpu"
)

func TestExtremesComputedAgain(t *testing.T) { backendtest.Extremes(t, cpu.Backend()) }
