// Downloads of TCP through one bottleneck, for comparison with the laboratory: sender - bottleneck - receiver.
//
//   bulk --rate=10Mbps --rtt=40ms --buffer=50000 --loss=0.01 --bytes=5000000 --flows=1 --tcp=ns3::TcpCubic --seed=1
// --rates=12,3 gives the bottleneck these rates in Mbit/s instead, each for a second, in turn.
//
// Prints one JSON object: seconds until the last byte of each flow had arrived, from when its connection began, or,
// with --seconds=N, the goodput of each flow from the fifth second on.

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace
{

// Payload of a packet of 1500 bytes with timestamps.
constexpr uint32_t SEGMENT = 1448;
// Until rates are measured, in seconds.
constexpr double WARM_UP = 5;

struct Flow
{
    uint64_t received = 0;
    uint64_t atStart = 0;
    double last = 0;
};

std::vector<Flow> flows;

void
Received(uint32_t flow, Ptr<const Packet> packet, const Address&)
{
    flows[flow].received += packet->GetSize();
    flows[flow].last = Simulator::Now().GetSeconds();
}

// Sets the rate of the second that begins, and comes again for the next one.
void
SetRate(Ptr<NetDevice> device, const std::vector<double>& rates, size_t second)
{
    auto rate = static_cast<uint64_t>(rates[second % rates.size()] * 1e6);
    device->SetAttribute("DataRate", DataRateValue(DataRate(rate)));
    Simulator::Schedule(Seconds(1), &SetRate, device, rates, second + 1);
}

void
BeginMeasurement()
{
    for (auto& flow : flows)
    {
        flow.atStart = flow.received;
    }
}

} // namespace

int
main(int argc, char* argv[])
{
    std::string rate = "10Mbps";
    std::string rtt = "40ms";
    std::string tcp = "ns3::TcpCubic";
    std::string queue = "droptail";
    std::string changing;
    uint32_t buffer = 50000;
    double loss = 0;
    uint64_t bytes = 5000000;
    double seconds = 0;
    uint32_t count = 1;
    uint32_t seed = 1;
    CommandLine command(__FILE__);
    command.AddValue("rate", "of the bottleneck", rate);
    command.AddValue("rates", "of the bottleneck in Mbit/s, each for a second", changing);
    command.AddValue("rtt", "without queues", rtt);
    command.AddValue("tcp", "ns3::TcpCubic or ns3::TcpLinuxReno", tcp);
    command.AddValue("queue", "droptail or fq-codel", queue);
    command.AddValue("buffer", "bytes that wait at the bottleneck", buffer);
    command.AddValue("loss", "share of packets lost on the way to the receiver", loss);
    command.AddValue("bytes", "of each flow; with --seconds, flows have no end", bytes);
    command.AddValue("seconds", "duration of a measurement of rates", seconds);
    command.AddValue("flows", "at the same time", count);
    command.AddValue("seed", "of all randomness", seed);
    command.Parse(argc, argv);

    RngSeedManager::SetSeed(seed);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName(tcp)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(16 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(16 << 20));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));

    NodeContainer nodes(2);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(rate));
    link.SetChannelAttribute("Delay", TimeValue(Time(rtt) / 2));
    // A packet waits in the queue discipline, so that one place alone decides what is dropped.
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1p"));
    auto devices = link.Install(nodes);
    InternetStackHelper().Install(nodes);

    TrafficControlHelper control;
    if (queue == "fq-codel")
    {
        control.SetRootQueueDisc("ns3::FqCoDelQueueDisc");
    }
    else
    {
        control.SetRootQueueDisc("ns3::FifoQueueDisc",
                                 "MaxSize",
                                 StringValue(std::to_string(buffer) + "B"));
    }
    control.Install(devices);

    if (loss > 0)
    {
        auto model = CreateObject<RateErrorModel>();
        model->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
        model->SetRate(loss);
        devices.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(model));
    }

    std::vector<double> rates;
    std::stringstream words(changing);
    for (std::string word; std::getline(words, word, ',');)
    {
        rates.push_back(std::stod(word));
    }
    if (!rates.empty())
    {
        SetRate(devices.Get(0), rates, 0);
    }

    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    auto interfaces = addresses.Assign(devices);
    flows.resize(count);
    for (uint32_t flow = 0; flow < count; ++flow)
    {
        uint16_t port = 5000 + flow;
        PacketSinkHelper sink("ns3::TcpSocketFactory",
                              InetSocketAddress(Ipv4Address::GetAny(), port));
        auto sinks = sink.Install(nodes.Get(1));
        sinks.Get(0)->TraceConnectWithoutContext("Rx", MakeBoundCallback(&Received, flow));
        BulkSendHelper source("ns3::TcpSocketFactory",
                              InetSocketAddress(interfaces.GetAddress(1), port));
        source.SetAttribute("MaxBytes", UintegerValue(seconds > 0 ? 0 : bytes));
        source.Install(nodes.Get(0));
    }

    double end = seconds > 0 ? WARM_UP + seconds : 300;
    Simulator::Schedule(Seconds(WARM_UP), &BeginMeasurement);
    Simulator::Stop(Seconds(end));
    Simulator::Run();

    std::cout << "{\"completion_s\":[";
    for (uint32_t flow = 0; flow < count; ++flow)
    {
        bool whole = seconds == 0 && flows[flow].received >= bytes;
        std::cout << (flow ? "," : "");
        if (whole)
        {
            std::cout << flows[flow].last;
        }
        else
        {
            std::cout << "null";
        }
    }
    std::cout << "],\"goodput_mbps\":[";
    for (uint32_t flow = 0; flow < count; ++flow)
    {
        double span = seconds > 0 ? seconds : flows[flow].last;
        double bytesThere = flows[flow].received - (seconds > 0 ? flows[flow].atStart : 0);
        std::cout << (flow ? "," : "") << bytesThere * 8e-6 / span;
    }
    std::cout << "]}" << std::endl;
    Simulator::Destroy();
    return 0;
}
