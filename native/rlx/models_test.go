package main

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/native/safetensors"
)

// TestEmbed writes vectors of arguments and of lines, which are the same.
func TestEmbed(t *testing.T) {
	dir := filepath.Join("..", "models", "testdata", "minilm")
	code, want, text := call(t, "", "embed", "-device", "cpu", dir, "the cat", "a big dog runs")
	if code != 0 || strings.Count(want, "\n") != 2 || !strings.HasPrefix(want, "[") {
		t.Fatalf("%d %q %q", code, want, text)
	}
	if code, got, text := call(t, "the cat\na big dog runs\n", "embed", "-device", "cpu", dir); code != 0 || got != want {
		t.Errorf("%d %q %q, want %q", code, got, text, want)
	}
	for _, args := range [][]string{{filepath.Join("..", "models", "testdata", "vit"), "a"}, {dir, "-tokens", "1000", "a"}, {"nowhere", "a"}} {
		if code, _, text := call(t, "", append([]string{"embed", "-device", "cpu"}, args...)...); code != exitError || text == "" {
			t.Errorf("%v: %d %q", args, code, text)
		}
	}
	if code, _, _ := call(t, "", "embed"); code != exitUsage {
		t.Errorf("without a model: %d", code)
	}
}

// TestTranscribe writes down a file of floats at the rate of the model, and refuses another rate.
func TestTranscribe(t *testing.T) {
	dir := filepath.Join("..", "models", "testdata", "whisper")
	tensors, _, err := safetensors.ReadFile(filepath.Join(dir, "expected.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	file := func(rate uint32) string {
		le := binary.LittleEndian
		data := append([]byte("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00"), 3, 0, 1, 0)
		data = le.AppendUint32(le.AppendUint32(data, rate), 4*rate)
		data = append(data, 4, 0, 32, 0, 'd', 'a', 't', 'a')
		data = le.AppendUint32(data, uint32(len(tensors["sound"].Data)))
		path := filepath.Join(t.TempDir(), "sound.wav")
		if err := os.WriteFile(path, append(data, tensors["sound"].Data...), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	code, got, text := call(t, "", "transcribe", "-device", "cpu", dir, file(16000))
	if want := "big ##ing ##ing ##ly ##ing ##ing is sat sun ##ed"; code != 0 || !strings.HasPrefix(got, want) {
		t.Errorf("%d %q %q, want %q at the beginning", code, got, text, want)
	}
	for _, args := range [][]string{{dir, file(8000)}, {"-language", "xx", dir, file(16000)}, {dir, "nowhere.wav"}} {
		if code, _, text := call(t, "", append([]string{"transcribe", "-device", "cpu"}, args...)...); code != exitError || text == "" {
			t.Errorf("%v: %d %q", args, code, text)
		}
	}
	if code, _, _ := call(t, "", "transcribe", dir); code != exitUsage {
		t.Errorf("without a file: %d", code)
	}
}
