package grpcguard

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/belaygo/belay/guard"
)

// codec encodes an answer with the name of its type.
var codec = guard.Codec{Name: "anypb", Marshal: marshal, Unmarshal: unmarshal}

// errUnknownType is the error of a stored answer whose type this program does not know.
var errUnknownType = errors.New("grpcguard: the type of the answer is unknown")

func marshal(v any) ([]byte, error) {
	message, ok := v.(proto.Message)
	if !ok {
		return nil, errMessage
	}
	name := message.ProtoReflect().Descriptor().FullName()
	if _, err := protoregistry.GlobalTypes.FindMessageByName(name); err != nil {
		return nil, fmt.Errorf("%s is not in the global registry: %w", name, err)
	}
	packed := new(anypb.Any)
	if err := anypb.MarshalFrom(packed, message, deterministic); err != nil {
		return nil, err
	}
	return deterministic.Marshal(packed)
}

func unmarshal(data []byte, v any) error {
	packed := new(anypb.Any)
	if err := proto.Unmarshal(data, packed); err != nil {
		return err
	}
	message, err := packed.UnmarshalNew()
	if errors.Is(err, protoregistry.NotFound) {
		return fmt.Errorf("%w: %s", errUnknownType, packed.GetTypeUrl())
	}
	if err != nil {
		return err
	}
	*v.(*proto.Message) = message
	return nil
}
