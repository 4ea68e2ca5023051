package rlx_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash/crc32"
	"iter"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
)

func TestJSONLines(t *testing.T) {
	var out bytes.Buffer
	write := rlx.JSONLines(&out)
	for _, r := range []rlx.Report{
		{Step: 5, Epoch: 1, Loss: 0.5, Rate: 100, Throughput: 12800, Metrics: map[string]float64{"accuracy": 0.75}, Eval: map[string]float64{"loss": math.Inf(1)}, Best: true},
		{Step: 6, Loss: math.NaN()},
	} {
		if err := write(r); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines", len(lines))
	}
	var first map[string]any
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil {
		t.Fatal(err)
	}
	if at, err := time.Parse(time.RFC3339Nano, first["time"].(string)); err != nil || time.Since(at) > time.Minute {
		t.Errorf("time %v, %v", at, err)
	}
	for _, c := range []struct{ line, want string }{
		{lines[0], `"step":5,"epoch":1,"loss":0.5,"rate":100,"throughput":12800,"metrics":{"accuracy":0.75},"eval":{"loss":null},"best":true}`},
		{lines[1], `"step":6,"epoch":0,"loss":null,"rate":0,"throughput":0}`},
	} {
		if _, rest, _ := strings.Cut(c.line, `Z",`); rest != c.want {
			t.Errorf("%s\nnot\n%s", rest, c.want)
		}
	}
	full := errors.New("full")
	if err := rlx.JSONLines(failing{full})(rlx.Report{}); !errors.Is(err, full) {
		t.Errorf("a full disk: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// eventRecord is the record of an event at 1.5 seconds, step 300, with loss 0.25 and
// eval/accuracy 0.5, as tensorboard 2.21.0 writes it:
//
//	e = Event(wall_time=1.5, step=300)
//	e.summary.value.add(tag="eval/accuracy", simple_value=0.5); e.summary.value.add(tag="loss", simple_value=0.25)
//	RecordWriter(file).write(e.SerializeToString())
const eventRecord = "31000000000000009d8383e909000000000000f83f10ac022a230a140a0d6576616c2f6163637572616379150000003f0a0b0a046c6f7373150000803eb08096d0"

// TestEventsAreThoseOfTensorBoard compares a record, except its time, with the bytes of
// TensorBoard's own writer.
func TestEventsAreThoseOfTensorBoard(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "runs", "one")
	e, err := rlx.NewEvents(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Report(rlx.Report{Step: 1, Loss: 2, Metrics: map[string]float64{"accuracy": 1}}); err != nil {
		t.Fatal(err)
	}
	if err := e.Report(rlx.Report{Step: 1, Loss: math.NaN(), Eval: map[string]float64{"f1": 1}}); err != nil {
		t.Fatal(err)
	}
	if err := e.Scalars(300, map[string]float64{"loss": 0.25, "eval/accuracy": 0.5}); err != nil {
		t.Fatal(err)
	}
	if err := e.Scalars(-1, nil); !errors.Is(err, ir.ErrAttr) {
		t.Errorf("a negative step: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "events.out.tfevents.*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var records [][]byte
	for len(data) > 0 {
		n := binary.LittleEndian.Uint64(data) + 16
		records, data = append(records, data[:n]), data[n:]
	}
	if len(records) != 4 || !bytes.Contains(records[0], []byte("brain.Event:2")) || !bytes.Contains(records[1], []byte("metrics/accuracy")) {
		t.Fatalf("%d records: %q", len(records), records)
	}
	if idle := records[2]; !bytes.Contains(idle, []byte("eval/f1")) || bytes.Contains(idle, []byte("loss")) || bytes.Contains(idle, []byte("rate")) {
		t.Errorf("a report without steps: %q", idle)
	}
	last := records[3]
	if at := math.Float64frombits(binary.LittleEndian.Uint64(last[13:])); !(math.Abs(at-float64(time.Now().Unix())) <= 60) {
		t.Errorf("time %v", at)
	}
	binary.LittleEndian.PutUint64(last[13:], math.Float64bits(1.5))
	sum := crc32.Checksum(last[12:len(last)-4], crc32.MakeTable(crc32.Castagnoli))
	binary.LittleEndian.PutUint32(last[len(last)-4:], (sum>>15|sum<<17)+0xa282ead8)
	if got := hex.EncodeToString(last); got != eventRecord {
		t.Errorf("%s\nnot\n%s", got, eventRecord)
	}
	if _, err := rlx.NewEvents(files[0]); err == nil {
		t.Error("a folder that is a file")
	}
}

// TestPrefetchKeepsTheOrder compares prefetched epochs with the others, ends one early, and has one
// fail.
func TestPrefetchKeepsTheOrder(t *testing.T) {
	plain := rlx.Shuffled(points(), 4, 3)
	read := func(data iter.Seq2[rlx.Inputs, error]) (all [][]byte) {
		for batch, err := range data {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, bytes.Clone(batch["x"].Data), bytes.Clone(batch["labels"].Data))
		}
		return all
	}
	ahead := rlx.Prefetch(plain, 2)
	for epoch := range 3 {
		want, got := read(plain(epoch)), read(ahead(epoch))
		if len(want) != 10 || len(got) != len(want) {
			t.Fatalf("%d batches, not %d", len(got), len(want))
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Errorf("epoch %d, tensor %d differs", epoch, i)
			}
		}
	}
	memory := map[*byte]bool{}
	for epoch := range 20 {
		for batch := range ahead(epoch) {
			memory[&batch["x"].Data[0]] = true
		}
	}
	if len(memory) > 4 { // two ready, one in use, one being prepared
		t.Errorf("twenty epochs take the memory of %d batches, want 4 at most", len(memory))
	}
	before := runtime.NumGoroutine()
	for range 50 {
		for range ahead(0) {
			break
		}
	}
	if now := runtime.NumGoroutine(); now > before+10 { // some end a little later
		t.Errorf("%d goroutines, then %d", before, now)
	}
	broken := errors.New("broken")
	failing := rlx.Prefetch(func(int) iter.Seq2[rlx.Inputs, error] {
		return func(yield func(rlx.Inputs, error) bool) { _ = yield(points(), nil) && yield(nil, broken) }
	}, 0)
	n := 0
	for _, err := range failing(0) {
		if n++; n == 2 && !errors.Is(err, broken) || n == 1 && err != nil {
			t.Errorf("batch %d: %v", n, err)
		}
	}
	if n != 2 {
		t.Errorf("%d batches", n)
	}
}

// TestPrefetchTrainsAlike trains with and without.
func TestPrefetchTrainsAlike(t *testing.T) {
	var losses [2][]float32
	for i, data := range []func(int) iter.Seq2[rlx.Inputs, error]{rlx.Shuffled(points(), 4, 3), rlx.Prefetch(rlx.Shuffled(points(), 4, 3), 3)} {
		trainer := pointsTrainer(t, 0.01)
		if _, err := rlx.Fit(ctx, trainer, rlx.Loop{Data: data, Steps: 17}); err != nil {
			t.Fatal(err)
		}
		var err error
		if losses[i], err = trainer.Losses(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for k := range losses[0] {
		if losses[0][k] != losses[1][k] {
			t.Errorf("step %d: %v and %v", k, losses[0][k], losses[1][k])
		}
	}
}

// TestTerminalLine has a bar, and keeps a report on one line of a terminal but for the last one.
func TestTerminalLine(t *testing.T) {
	r := rlx.Report{Step: 50, Steps: 100, Loss: 1.5, Rate: 10}
	if got, want := rlx.TerminalLine(r), "\r\x1b[K\x1b[?7l[============            ] "+r.String()+"\x1b[?7h"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r.Done = true
	if got, want := rlx.TerminalLine(r), "\r\x1b[K[============            ] "+r.String()+"\n"; got != want {
		t.Errorf("the last one is %q, want %q", got, want)
	}
}
