package llm

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
)

// bedrockReader folds the events of a stream.
type bedrockReader struct {
	blocks    []*bedrockPiece // in the order they began
	usage     *Usage
	stop      types.StopReason
	stopped   bool
	reasoning int
}

// bedrockPiece is one content block as it grows.
type bedrockPiece struct {
	index                int32
	text, thought, input strings.Builder
	signature            string
	redacted             []byte
	tool                 *types.ToolUseBlockStart
}

// speaks reports whether the block is text or a call.
func (p *bedrockPiece) speaks() bool {
	return p.tool != nil || strings.TrimSpace(p.text.String()) != ""
}

func (r *bedrockReader) piece(index *int32) *bedrockPiece {
	i := aws.ToInt32(index)
	for _, p := range slices.Backward(r.blocks) {
		if p.index == i {
			return p
		}
	}
	p := &bedrockPiece{index: i}
	r.blocks = append(r.blocks, p)
	return p
}

func (r *bedrockReader) event(e types.ConverseStreamOutput, emit func(delta)) {
	switch v := e.(type) {
	case *types.ConverseStreamOutputMemberContentBlockStart:
		if tool, ok := v.Value.Start.(*types.ContentBlockStartMemberToolUse); ok {
			r.piece(v.Value.ContentBlockIndex).tool = &tool.Value
		}
	case *types.ConverseStreamOutputMemberContentBlockDelta:
		r.delta(r.piece(v.Value.ContentBlockIndex), v.Value.Delta, emit)
	case *types.ConverseStreamOutputMemberMessageStop:
		r.stop, r.stopped = v.Value.StopReason, true
	case *types.ConverseStreamOutputMemberMetadata:
		r.meta(v.Value.Usage)
	}
}

func (r *bedrockReader) delta(p *bedrockPiece, d types.ContentBlockDelta, emit func(delta)) {
	switch v := d.(type) {
	case *types.ContentBlockDeltaMemberText:
		p.text.WriteString(v.Value)
		emit(delta{Text: v.Value})
	case *types.ContentBlockDeltaMemberToolUse:
		p.input.WriteString(aws.ToString(v.Value.Input))
	case *types.ContentBlockDeltaMemberReasoningContent:
		switch t := v.Value.(type) {
		case *types.ReasoningContentBlockDeltaMemberText:
			p.thought.WriteString(t.Value)
			r.reasoning += len(t.Value)
			emit(delta{Reasoning: t.Value})
		case *types.ReasoningContentBlockDeltaMemberSignature:
			p.signature += t.Value
		case *types.ReasoningContentBlockDeltaMemberRedactedContent:
			p.redacted = append(p.redacted, t.Value...)
		}
	}
}

// meta takes in usage: cached tokens are reported beside the input.
func (r *bedrockReader) meta(u *types.TokenUsage) {
	if u == nil {
		return
	}
	read, write := int(aws.ToInt32(u.CacheReadInputTokens)), int(aws.ToInt32(u.CacheWriteInputTokens))
	input := int(aws.ToInt32(u.InputTokens)) + read + write
	if input == 0 {
		return
	}
	r.usage = &Usage{InputTokens: input, OutputTokens: int(aws.ToInt32(u.OutputTokens)), CacheReadTokens: read, CacheWriteTokens: write}
}
