module github.com/rlx-go/rlx/wasm/edge/workers

go 1.26.0

require (
	github.com/rlx-go/rlx v0.0.0
	github.com/syumai/workers v0.31.0
)

require github.com/x448/float16 v0.8.4 // indirect

replace github.com/rlx-go/rlx => ../../..
