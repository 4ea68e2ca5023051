//go:build cgo && !js

package exec_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rlx-go/rlx/internal/compiler/plan/plantest"
	"github.com/rlx-go/rlx/webgpu/internal/exec"
)

func Example() {
	dev, err := exec.Open(exec.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	s, err := dev.Load(ctx, plantest.Linear())
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close(ctx)
	init, err := s.Entry("init")
	if err != nil {
		log.Fatal(err)
	}
	reading, err := init.Run(context.Background(), 1, "w")
	if err != nil {
		log.Fatal(err)
	}
	values, err := reading.Wait(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(values["w"].Dims)
}
