package webgpu_test

import (
	"testing"

	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/webgpu"
)

func TestBackend(t *testing.T) { backendtest.Run(t, webgpu.Backend()) }
