// Command compile times the compiler as a native program, beside what js/bench/compile.mjs
// times in a page: from a graph's text form to the bytes of its plan.
//
//	go run ./js/bench/compile FOLDER ROUNDS
//
// writes the graphs, training steps of language models, to FOLDER, and prints a line of JSON
// for each: name, nodes, milliseconds of the first and of the least of all rounds.
package main

import (
	"encoding/json"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/plan"
	"github.com/rlx-go/rlx/webgpu/wgsl"
)

// What a device must allow for the tensors of GPT-2; compile.mjs has the same.
const (
	bindingBytes = 2<<30 - 4
	bufferBytes  = 4<<30 - 4
)

type result struct {
	Name  string  `json:"name"`
	Nodes int     `json:"nodes"`
	First float64 `json:"first"` // milliseconds
	Least float64 `json:"least"`
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: compile FOLDER ROUNDS")
	}
	rounds, err := strconv.Atoi(os.Args[2])
	if err != nil || rounds < 1 {
		log.Fatalf("%q is no number of rounds", os.Args[2])
	}
	for _, c := range []struct {
		name string
		gpt  irtest.GPT
	}{
		{"lm", irtest.GPT{Vocab: 65, Context: 16, Width: 32, Heads: 4, Blocks: 1, Batch: 16}},
		{"gpt2", irtest.GPT2},
	} {
		if err := measure(os.Args[1], c.name, c.gpt, rounds); err != nil {
			log.Fatalf("%s: %v", c.name, err)
		}
	}
}

func measure(folder, name string, gpt irtest.GPT, rounds int) error {
	loss, err := gpt.Loss()
	if err != nil {
		return err
	}
	step, err := optim.Step(loss, "loss", optim.AdamW{}, optim.Options{ClipNorm: 1})
	if err != nil {
		return err
	}
	text := step.String()
	if err := os.WriteFile(filepath.Join(folder, "compile-"+name+".txt"), []byte(text), 0o644); err != nil {
		return err
	}
	r := result{Name: name, Nodes: len(step.Nodes())}
	for i := range rounds {
		begun := time.Now()
		if err := compile(text); err != nil {
			return err
		}
		took := float64(time.Since(begun).Microseconds()) / 1e3
		if i == 0 {
			r.First, r.Least = took, took
		}
		r.Least = min(r.Least, took)
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

func compile(text string) error {
	g, err := ir.Parse(text)
	if err != nil {
		return err
	}
	m, err := ir.NewModule("main", ir.Entry{Name: "step", Graph: g})
	if err != nil {
		return err
	}
	target := plan.WebGPU()
	target.Limits.BindingBytes, target.Limits.BufferBytes = bindingBytes, bufferBytes
	p, err := plan.Compile(m, target, wgsl.Printer{})
	if err != nil {
		return err
	}
	_, err = plan.Encode(p)
	return err
}
