//go:build unix

// Command compile times the compiler as a native program, to compare with js/bench/compile.mjs, which
// times in a page: from a graph's text form to the bytes of its plan.
//
//	go run ./js/bench/compile FOLDER ROUNDS [NAME]...
//
// writes the graphs, training steps of language models, to FOLDER, and prints a line of JSON
// for each: name, nodes, and for each round the milliseconds that passed and those of
// processor time, of all threads. Where names are given it does so for these alone, which may
// also be FAMILY-NODES, a graph of [irtest.Families], such as branches-100000.
package main

import (
	"encoding/json"
	"errors"
	"log"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
)

// What a device must allow for the tensors of GPT-2; compile.mjs has the same.
const (
	bindingBytes = 2<<30 - 4
	bufferBytes  = min(4<<30-4, math.MaxInt) // where an int has 32 bits
)

type result struct {
	Name   string `json:"name"`
	Nodes  int    `json:"nodes"`
	Rounds []took `json:"rounds"`
}

// took is the time of a compilation, in milliseconds.
type took struct {
	Wall float64 `json:"wall"`
	CPU  float64 `json:"cpu"`
}

func main() {
	log.SetFlags(0)
	if len(os.Args) < 3 {
		log.Fatal("usage: compile FOLDER ROUNDS [NAME]...")
	}
	rounds, err := strconv.Atoi(os.Args[2])
	if err != nil || rounds < 1 {
		log.Fatalf("%q is no number of rounds", os.Args[2])
	}
	names := os.Args[3:]
	if len(names) == 0 {
		names = []string{"lm", "characters", "gpt2"}
	}
	for _, name := range names {
		if err := measure(os.Args[1], name, rounds); err != nil {
			log.Fatalf("%s: %v", name, err)
		}
	}
}

var models = map[string]irtest.GPT{
	"lm":         {Vocab: 65, Context: 16, Width: 32, Heads: 4, Blocks: 1, Batch: 16},
	"characters": irtest.CharacterGPT,
	"gpt2":       irtest.GPT2,
}

// graphOf returns the graph of a name.
func graphOf(name string) (*ir.Graph, error) {
	if model, ok := models[name]; ok {
		loss, err := model.Loss()
		if err != nil {
			return nil, err
		}
		return optim.Step(loss, "loss", optim.AdamW{}, optim.Options{ClipNorm: 1})
	}
	family, size, _ := strings.Cut(name, "-")
	nodes, err := strconv.Atoi(size)
	i := slices.IndexFunc(irtest.Families, func(f irtest.Growing) bool { return f.Name == family })
	if err != nil || i < 0 {
		return nil, errors.New("no model, and no family and number of nodes")
	}
	return irtest.Families[i].Graph(nodes)
}

func measure(folder, name string, rounds int) error {
	step, err := graphOf(name)
	if err != nil {
		return err
	}
	text := step.String()
	if err := os.WriteFile(filepath.Join(folder, "compile-"+name+".txt"), []byte(text), 0o644); err != nil {
		return err
	}
	r := result{Name: name, Nodes: len(step.Nodes())}
	for range rounds {
		begun, used := time.Now(), processorTime()
		if err := compile(text); err != nil {
			return err
		}
		r.Rounds = append(r.Rounds, took{milliseconds(time.Since(begun)), milliseconds(processorTime() - used)})
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// processorTime is the CPU time of this process's threads so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		log.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
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
