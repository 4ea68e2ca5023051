package rlx

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rlx-go/rlx/ir"
)

// Events writes the event file of a training that TensorBoard shows:
//
//	events, err := rlx.NewEvents("runs/first")
//	defer events.Close()
//	rlx.Fit(ctx, trainer, rlx.Loop{..., Callbacks: []func(rlx.Report) error{events.Report}})
//
// Its methods must be called by one goroutine at a time.
type Events struct {
	file *os.File
}

// NewEvents makes a folder, if it does not exist, and an event file in it.
func NewEvents(folder string) (*Events, error) {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, err
	}
	host, _ := os.Hostname()
	now := time.Now()
	name := fmt.Sprintf("events.out.tfevents.%d.%s.%d.rlx", now.Unix(), cmp.Or(host, "host"), now.Nanosecond())
	file, err := os.OpenFile(filepath.Join(folder, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	e := &Events{file}
	if err := e.write(versionEvent(now)); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return e, nil
}

// Report writes the loss, the steps and the examples per second, the metrics and the evaluation of a report, as "loss",
// "rate", "throughput", "metrics/accuracy" and "eval/loss". A report without steps, of a resumed training with none left,
// has no loss, rate and throughput: those of the step are in the file of the training before. It is a callback for [Loop].
func (e *Events) Report(r Report) error {
	if e == nil || e.file == nil {
		return absent("events", "report", "NewEvents")
	}
	values := map[string]float64{}
	if !r.idle() {
		values["loss"], values["rate"], values["throughput"] = r.Loss, r.Rate, r.Throughput
	}
	for name, v := range r.Metrics {
		values["metrics/"+name] = v
	}
	for name, v := range r.Eval {
		values["eval/"+name] = v
	}
	return e.Scalars(r.Step, values)
}

// Scalars writes values of a step by name, rounded to f32. The error is of kind [ir.ErrAttr] for a
// negative step.
func (e *Events) Scalars(step int, values map[string]float64) error {
	if e == nil || e.file == nil {
		return absent("events", "scalars", "NewEvents")
	}
	if step < 0 {
		return ir.Attrf("step is %d: it must be 0 or greater", step)
	}
	return e.write(scalarEvent(time.Now(), step, values))
}

// Close closes the file.
func (e *Events) Close() error {
	if e == nil || e.file == nil {
		return absent("events", "close", "NewEvents")
	}
	return e.file.Close()
}

// write writes a record of TFRecord files: the length as a u64, its checksum, the data, its
// checksum, all little endian.
func (e *Events) write(data []byte) error {
	record := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	record = binary.LittleEndian.AppendUint32(record, maskedSum(record))
	record = append(record, data...)
	_, err := e.file.Write(binary.LittleEndian.AppendUint32(record, maskedSum(data)))
	return err
}

// maskedSum returns the CRC-32C of data, rotated and shifted as TFRecord files have it.
func maskedSum(data []byte) uint32 {
	sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
	return (sum>>15 | sum<<17) + 0xa282ead8
}

// The fields of the protocol buffers Event, Summary and Summary.Value, as tensorflow/core/util/event.proto
// and tensorflow/core/framework/summary.proto number them, with their wire types.
const (
	eventTime    = 1<<3 | 1 // double
	eventStep    = 2 << 3   // int64: wire type 0
	eventVersion = 3<<3 | 2 // string
	eventSummary = 5<<3 | 2 // Summary
	summaryValue = 1<<3 | 2 // Summary.Value
	valueTag     = 1<<3 | 2 // string
	valueSimple  = 2<<3 | 5 // float
)

func versionEvent(at time.Time) []byte {
	return appendBytes(timeField(at), eventVersion, []byte("brain.Event:2"))
}

func scalarEvent(at time.Time, step int, values map[string]float64) []byte {
	var summary []byte
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := append(appendBytes(nil, valueTag, []byte(name)), valueSimple)
		value = binary.LittleEndian.AppendUint32(value, math.Float32bits(float32(values[name])))
		summary = appendBytes(summary, summaryValue, value)
	}
	event := binary.AppendUvarint(append(timeField(at), eventStep), uint64(step))
	return appendBytes(event, eventSummary, summary)
}

func timeField(at time.Time) []byte {
	seconds := float64(at.UnixNano()) / 1e9
	return binary.LittleEndian.AppendUint64([]byte{eventTime}, math.Float64bits(seconds))
}

// appendBytes appends a field of bytes with its length.
func appendBytes(to []byte, field byte, data []byte) []byte {
	return append(binary.AppendUvarint(append(to, field), uint64(len(data))), data...)
}
