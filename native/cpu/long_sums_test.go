package cpu_test

import (
	"testing"

	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/cpu"
)

func TestLongSums(t *testing.T) {
	everyLevel(t, func(t *testing.T) { backendtest.LongSums(t, cpu.Backend()) })
}
