package main

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/demo/cli/clitest"
	"github.com/rlx-go/rlx/demo/data"
)

// small returns options for a short run on the CPU.
func small(steps int) options {
	return options{size: "small", device: "cpu", steps: steps, seed: 1, every: 1000, prompt: "\n", length: 5, temperature: 1, precision: "f32"}
}

// held runs the command and returns its output and the loss on its last line.
func held(t *testing.T, o options) (string, float64) {
	t.Helper()
	var out bytes.Buffer
	if err := run(context.Background(), &out, o); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	m := regexp.MustCompile(`^after \d+ steps, loss on the text held out (\d+\.\d+)$`).FindStringSubmatch(lines[len(lines)-1])
	if m == nil {
		t.Fatalf("the last line is %q", lines[len(lines)-1])
	}
	loss, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), loss
}

// shortened returns options with the first fifth of the default text, as each run ends by measuring the
// loss on a tenth of its text, and the number of characters in it.
func shortened(t *testing.T, steps int) (o options, characters int) {
	t.Helper()
	text, err := data.Shakespeare()
	if err != nil {
		t.Fatal(err)
	}
	text = text[:len(text)/5]
	o = small(steps)
	o.text = filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(o.text, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return o, len(data.NewText(text).Characters)
}

// At first all characters are about equally probable; after some steps the loss is
// below that of the characters' frequencies, 3.32.
func TestTheLossFalls(t *testing.T) {
	o, characters := shortened(t, 0)
	if _, loss := held(t, o); !(math.Abs(loss-math.Log(float64(characters))) <= 0.05) {
		t.Errorf("untrained: %v, not log %d", loss, characters)
	}
	o.steps = 40
	out, loss := held(t, o)
	if loss > 3.1 {
		t.Errorf("after 40 steps: %v\n%s", loss, out)
	}
}

func TestResumedTrainingEqualsUninterrupted(t *testing.T) {
	dir := t.TempDir()
	o, _ := shortened(t, 8)
	o.save = filepath.Join(dir, "whole")
	held(t, o)

	stopped := o
	stopped.save, stopped.every = filepath.Join(dir, "stopped"), 3
	ctx, stop := context.WithCancel(context.Background())
	out := &clitest.Interrupting{At: "--- step", Stop: stop}
	if err := run(ctx, out, stopped); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); strings.Contains(s, "after 8 steps") || !strings.Contains(s, "saved "+stopped.save) {
		t.Fatalf("it was not interrupted:\n%s", s)
	}
	resumed := o
	resumed.load, resumed.save = stopped.save, filepath.Join(dir, "resumed")
	held(t, resumed)

	want, err := os.ReadFile(o.save)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(resumed.save)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("what was learned differs from that of a training without interruption")
	}
}

// A learning rate that is far too high makes each measurement worse than the first: the training
// ends with the parameters of the first.
func TestPatienceEndsWithTheBest(t *testing.T) {
	o := small(60)
	o.every, o.patience, o.prompt = 2, 2, "a"
	o.text = filepath.Join(t.TempDir(), "noise.txt")
	if err := os.WriteFile(o.text, noise(20000), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := held(t, o)
	measured := regexp.MustCompile(`--- step (\d+), loss on the text held out (\d+\.\d+)`).FindAllStringSubmatch(out, -1)
	if n := len(measured); n < 3 || n > 29 {
		t.Fatalf("%d measurements", n)
	}
	best := slices.MinFunc(measured, func(a, b []string) int { return strings.Compare(a[2], b[2]) })
	if last := out[strings.LastIndex(out, "\nafter "):]; !strings.HasPrefix(last, "\nafter "+best[1]+" steps") || best[1] == "60" {
		t.Errorf("step %s was best, and it ended with %s", best[1], last)
	}
	if strings.Contains(out, "least loss") {
		t.Error("the loss that it ends with is printed twice")
	}
}

// noise is a text whose held-out part has nothing in common with the rest: training raises the
// held-out loss.
func noise(n int) []byte {
	text := bytes.Repeat([]byte("ab"), n/2)
	for i := n * 8 / 10; i < n; i++ {
		text[i] = "abcdefgh"[(i*i/7)%8]
	}
	return text
}

func TestInvalidFlagsAreRefusedBeforeTraining(t *testing.T) {
	short := filepath.Join(t.TempDir(), "short.txt")
	if err := os.WriteFile(short, []byte("To be, or not to be"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(o *options){
		"a size there is not":       func(o *options) { o.size = "huge" },
		"a device there is not":     func(o *options) { o.device = "abacus" },
		"a folder there is not":     func(o *options) { o.save = filepath.Join(short, "x", "y") },
		"a file there is not":       func(o *options) { o.text = filepath.Join(filepath.Dir(short), "none") },
		"a text too short":          func(o *options) { o.text = short },
		"a prompt it cannot know":   func(o *options) { o.prompt = "ROMÉO" },
		"an empty prompt":           func(o *options) { o.prompt = "" },
		"a precision there is not":  func(o *options) { o.precision = "f4" },
		"a temperature of nothing":  func(o *options) { o.temperature = 0 },
		"weights that are not ones": func(o *options) { o.load = short },
	} {
		var out bytes.Buffer
		o := small(1)
		change(&o)
		if err := run(context.Background(), &out, o); err == nil || strings.Contains(out.String(), "tokens/s") {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
	}
}
