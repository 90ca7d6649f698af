# Sourced: makes a veth pair into the namespace $1 with $2 transmit and receive queues, whose devices let the kernel cut packets.
# Removing the namespace removes the far end, and with it the other.
near=v${1#iotoll-v}a far=v${1#iotoll-v}b queues="numtxqueues $2 numrxqueues $2"
ip netns add $1 &&
    ip link add name $near gso_max_segs 1 $queues type veth peer name $far $queues netns $1 &&
    ip addr add 10.213.77.1/30 dev $near && ip link set $near up &&
    ip -n $1 addr add 10.213.77.2/30 dev $far && ip -n $1 link set $far up && ip -n $1 link set lo up
